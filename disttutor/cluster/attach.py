"""Ranks that torchrun started: this process is one of them, and a run calls the function right here.

    torchrun --nnodes 2 --nproc-per-node 4 … script.py        # with Cluster().run(train) in script.py

Every process runs the same script and gets the same results; only rank 0's prints are shown, except for those of the
function, which are marked with their rank. When a rank fails, all processes leave, and the story is told once.
"""

from __future__ import annotations

import faulthandler
import io
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from disttutor.cluster import here
from disttutor.cluster.channel import Parcel
from disttutor.cluster.devices import cores, count_gpus, threads_per_rank
from disttutor.cluster.errors import Fault, RankError, blame, describe_exception, stack_in_words
from disttutor.cluster.output import Console
from disttutor.cluster.payload import check_call, name_of
from disttutor.cluster.pickles import pack
from disttutor.cluster.settings import check_output, check_slow_motion, check_timeout

_LINGER = 1.5  # seconds that a rank with a fault stays, so that the others can read it before torchrun ends them
_GRACE = 0.5  # seconds in which a rank that lost a peer looks for that peer's own report


def started_by_torchrun() -> bool:
    """Whether this process is one of the ranks of a torchrun job."""
    return "DISTTUTOR_RANK" not in os.environ and all(
        name in os.environ for name in ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK")
    )


class Attached:
    """A cluster whose ranks are there already, this process among them."""

    def __init__(self, ranks: int | None, device: str, threads: int | None) -> None:
        import torch
        import torch.distributed as dist

        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if ranks not in (None, self.ranks):
            raise ValueError(f"ranks={ranks}, but torchrun started {self.ranks}: leave ranks out, or start as many")
        if threads is not None:
            torch.set_num_threads(threads_per_rank(self.ranks, threads))  # else as torchrun set OMP_NUM_THREADS
        self.backend = self._place(device)
        if dist.is_initialized():
            store = dist.distributed_c10d._get_default_store()
        else:
            store, _, _ = next(dist.rendezvous("env://"))
            dist.init_process_group(
                self.backend, store=dist.PrefixStore("group", store), rank=self.rank, world_size=self.ranks
            )
        self._store = dist.PrefixStore("disttutor", store)
        self._runs = 0
        self._stdout, self._hook = sys.stdout, sys.excepthook
        sys.excepthook = self._tell_once
        self._quiet()

    def _place(self, device: str) -> str:
        import torch

        local, beside = int(os.environ["LOCAL_RANK"]), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        if device not in ("cpu", "cuda", "auto"):
            raise ValueError(f"device={device!r}: choose one of 'cpu', 'cuda', 'auto'")
        gpus = 0 if device == "cpu" else count_gpus()
        if device == "cuda" and gpus == 0:
            raise RuntimeError('device="cuda", but torch finds no NVIDIA GPU on this machine. Use device="cpu"')
        if gpus == 0 or (device == "auto" and gpus < beside):
            here.DEVICE = torch.device("cpu")
            return "gloo"
        here.DEVICE = torch.device("cuda", local % gpus)
        torch.cuda.set_device(here.DEVICE)
        return "cpu:gloo,cuda:nccl" if gpus >= beside else "gloo"

    def run(self, fn: Callable[..., Any], args: tuple, timeout, record: bool, slow_motion, output) -> Any:
        """Call `fn(rank, *args)` here, wait for the other ranks, and return every rank's result in each of them."""
        from disttutor.cluster.ranks import Results, read_all, trace_of

        timeout, slow_motion = check_timeout(timeout), check_slow_motion(slow_motion)
        check_output(output)
        check_call(fn, args)
        self._runs += 1
        console = Console(output if output is not None else self._show)
        start = time.perf_counter()
        try:
            info, parcel = self._call(fn, args, timeout, bool(record or slow_motion), slow_motion, console)
            self._await_others()
            answers = self._exchange(info, parcel)
        except RankError:
            raise
        except BaseException as problem:  # SystemExit too must be told to the others
            raise self._report(problem) from None
        results = Results(read_all(answers))
        results.seconds = time.perf_counter() - start
        if record or slow_motion:
            offsets, note = self._clock_offsets()
            results.trace = trace_of([answer[0]["events"] for answer in answers], slow_motion, offsets, note)
        return results

    def _call(self, fn, args, timeout, record, slow_motion, console) -> tuple[dict[str, Any], Parcel]:
        events = None
        stdout, sys.stdout = sys.stdout, _Lines(console, self.rank)
        overtime = _Deadline(self.rank, name_of(fn), timeout)
        try:
            if record:
                from disttutor import traces

                traces.start_recording(self.rank, slow_motion=slow_motion)
            try:
                value = fn(self.rank, *args)
            finally:
                if record:
                    events = traces.stop_recording()
        finally:
            overtime.cancel()
            console.finish()
            sys.stdout = stdout
        return {"events": events}, pack(value)

    def _await_others(self) -> None:
        """Wait until every rank has returned. Raises RankError if one reports a fault instead."""
        import torch.distributed as dist

        pause = 0.002
        try:
            self._store.add(f"{self._runs}/returned", 1)
            while self._store.add(f"{self._runs}/returned", 0) < self.ranks:
                self._look_for_fault()
                time.sleep(pause)
                pause = min(0.1, pause * 1.3)
        except (dist.DistError, RuntimeError) as problem:
            if isinstance(problem, RankError):
                raise
            raise RankError(0, "died", f"rank 0 is gone, which kept the list of who has returned: {problem}") from None

    def _look_for_fault(self) -> None:
        key = f"{self._runs}/fault"
        if self._store.check([key]):
            raise RankError(*pickle.loads(self._store.get(key)))

    def _report(self, problem: BaseException) -> RankError:
        """Tell the others what happened here, and stay until they have read it."""
        fault = Fault(self.rank, report=describe_exception(problem, skip=__file__), when=time.monotonic())
        error = blame([fault])
        try:
            if fault.of_a_peer:
                time.sleep(_GRACE)
                self._look_for_fault()
            key = f"{self._runs}/fault"
            if self._store.add(f"{self._runs}/faults", 1) == 1:
                self._store.set(key, pickle.dumps((error.rank, error.kind, error.detail)))
                print(f"RankError: {error}", file=sys.stderr, flush=True)
        except RankError as told:
            return told
        except RuntimeError:
            print(f"RankError: {error}", file=sys.stderr, flush=True)  # rank 0, which kept the store, is gone
        time.sleep(_LINGER)
        return error

    def _exchange(self, info: dict[str, Any], parcel: Parcel) -> list[tuple[dict[str, Any], Parcel]]:
        """Every rank's answer, in every rank."""
        import torch.distributed as dist

        mine = (info, bytes(parcel.body), [bytes(buffer) for buffer in parcel.buffers])
        all_of_them: list[Any] = [None] * self.ranks
        dist.all_gather_object(all_of_them, mine)
        return [(i, Parcel(body, [bytearray(b) for b in buffers])) for i, body, buffers in all_of_them]

    def _clock_offsets(self) -> tuple[list[int] | None, str]:
        """By how many nanoseconds each rank's clock is ahead of rank 0's, and a note on it; one machine has one clock.

        Every rank must call this; rank 0 asks each of the others a few times.
        """
        import torch
        import torch.distributed as dist

        if os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
            return None, ""
        from disttutor.traces import offset_from_pings

        times, offsets, error = 16, [0], 0
        moment = torch.zeros(1, dtype=torch.int64)
        for other in range(1, self.ranks):
            if self.rank == other:
                for _ in range(times):
                    dist.recv(moment, src=0)
                    moment.fill_(time.perf_counter_ns())
                    dist.send(moment, dst=0)
            if self.rank != 0:
                offsets.append(0)
                continue

            def ping(other: int = other) -> tuple[int, int, int]:
                asked = time.perf_counter_ns()
                dist.send(moment, dst=other)
                dist.recv(moment, src=other)
                return asked, int(moment), time.perf_counter_ns()

            offset = offset_from_pings(ping, times)
            offsets.append(offset.nanoseconds)
            error = max(error, offset.error)
        told: list[Any] = [(offsets, f"clocks of the machines aligned to {error / 1e6:.2g} ms")]
        dist.broadcast_object_list(told, src=0)
        return told[0]

    def _quiet(self) -> None:
        """The script prints once, not once a rank."""
        if self.rank != 0:
            sys.stdout = open(os.devnull, "w")

    def _show(self, rank: int | None, text: str) -> None:
        self._stdout.write(text if rank is None else f"[rank {rank}] {text}")
        self._stdout.flush()

    def _tell_once(self, kind, problem, trace) -> None:
        """What ends a process is printed by the rank it happened in; it has done so already."""
        if not isinstance(problem, RankError):
            self._hook(kind, problem, trace)

    def pids(self) -> list[int]:
        """The process ids of all ranks; every rank must ask."""
        import torch.distributed as dist

        pids: list[Any] = [None] * self.ranks
        dist.all_gather_object(pids, os.getpid())
        return pids

    def describe(self) -> str:
        """`rank 1 of 8 that torchrun started, on cpu, gloo; 4 of them on this machine of 16 cores`."""
        beside = os.environ.get("LOCAL_WORLD_SIZE", "?")
        return (f"rank {self.rank} of {self.ranks} that torchrun started, on {here.DEVICE}, {self.backend}; "
                f"{beside} of them on this machine of {cores()} cores")  # fmt: skip

    def close(self) -> None:
        """Leave the group, and print again."""
        import torch.distributed as dist

        sys.stdout, sys.excepthook = self._stdout, self._hook
        if dist.is_initialized():
            dist.destroy_process_group()


class _Lines(io.TextIOBase):
    """What the function prints, to the console that marks it."""

    def __init__(self, console: Console, rank: int) -> None:
        self._console, self._rank = console, rank

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._console.feed(self._rank, text.encode("utf-8", "backslashreplace"))
        return len(text)


class _Deadline:
    """Ends this process when its function does not return in time, and says where it stood.

    A process inside a collective cannot be interrupted in any other way; torchrun then ends the other ranks.
    """

    def __init__(self, rank: int, label: str, seconds: float | None) -> None:
        self._rank, self._label, self._seconds = rank, label, seconds
        self._over = threading.Event()
        if seconds is not None:
            self._main = threading.get_ident()
            threading.Thread(target=self._watch, daemon=True, name="deadline").start()
            faulthandler.dump_traceback_later(seconds + 5.0, exit=True)  # if Python code cannot run any more

    def _watch(self) -> None:
        if self._over.wait(self._seconds):
            return
        stack, frame = [], sys._current_frames().get(self._main)
        while frame is not None:
            stack.append(f'File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}')
            frame = frame.f_back
        print(f"RankError: rank {self._rank} did not return from {self._label} within {self._seconds:g} s\n"
              f"rank {self._rank} stood here (innermost first):\n{stack_in_words(chr(10).join(stack))}",
              file=sys.stderr, flush=True)  # fmt: skip
        time.sleep(_LINGER)  # the others print theirs
        os._exit(1)

    def cancel(self) -> None:
        self._over.set()
        if self._seconds is not None:
            faulthandler.cancel_dump_traceback_later()
