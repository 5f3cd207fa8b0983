"""What a rank does: join its process group, run what it is sent, send back what came of it.

The same for a fork of the server and for a spawned process. Everything a rank prints goes, line by line, through a
pipe to the notebook.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import linecache
import os
import select
import signal
import sys
import threading
import time
import warnings
from typing import Any

from disttutor.cluster import here
from disttutor.cluster.channel import Channel
from disttutor.cluster.errors import describe_exception, describe_type
from disttutor.cluster.pickles import pack, unpack

_FAREWELL = 2.0  # seconds that a rank's exit functions may take


def live(connection, out, kernel: int, forked: bool) -> None:
    """The whole life of a rank. `connection` and `out` are its ends of the two pipes; never returns."""
    _own_process_group()
    _die_with(kernel, connection, forked)
    _speak_through(out)
    if forked:
        atexit._clear()  # what the server's imports registered is not this process's to run
        _new_randomness()
    channel = Channel(connection)
    here.CHANNEL, here.PROCESS = channel, os.getpid()
    try:
        _serve(channel)
    except (EOFError, OSError):
        pass  # the notebook has let go of this rank
    finally:
        _flush()
        os._exit(0)


def _serve(channel: Channel) -> None:
    myself = os.getpid()
    while True:
        kind, info, parcel = channel.receive()
        if kind == "leave":
            _be_gone_within(_FAREWELL)
            atexit._run_exitfuncs()
            return
        try:
            if kind == "setup":
                _join(info)
                channel.send("ready", {"pid": os.getpid()})
                continue
            answer = _call(info, parcel)
        except BaseException as problem:  # SystemExit and KeyboardInterrupt are news too
            _end_a_fork_of(myself, problem)
            _flush()
            channel.send("raised", describe_exception(problem, skip=__file__) | {"when": time.monotonic()})
        else:
            _end_a_fork_of(myself)
            _flush()
            channel.send("result", *answer)


def _end_a_fork_of(rank: int, problem: BaseException | None = None) -> None:
    """A process that the learner's function forked comes back here as its parent does, but it is not the rank."""
    if os.getpid() == rank:
        return
    code = 0
    if isinstance(problem, SystemExit):
        code = problem.code if isinstance(problem.code, int) else int(problem.code is not None)
    elif problem is not None:
        code = 1
        print(describe_exception(problem, skip=__file__)["text"], end="", file=sys.__stderr__)
    _flush()
    os._exit(code & 0xFF)


def _be_gone_within(seconds: float) -> None:
    """Nobody waits for a rank that leaves, so it sees to it itself that it does not linger."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the system ends the process, whatever it is doing
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _call(info: dict[str, Any], parcel) -> tuple[dict[str, Any], Any]:
    for name, lines in info["sources"].items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    import torch.distributed as dist

    if not dist.is_initialized():
        raise RuntimeError("an earlier run destroyed the process group of these ranks; the next run gets new ranks")
    function, arguments = unpack(parcel)
    events = None
    rank = here.rank()
    if info["record"]:
        from disttutor import traces

        traces.start_recording(rank, slow_motion=info["slow_motion"])
        try:
            value = function(rank, *arguments)
        finally:
            events = traces.stop_recording()
    else:
        value = function(rank, *arguments)
    try:
        result = pack(value)
    except Exception as problem:
        raise TypeError(
            f"the result cannot be sent back to the notebook: {describe_type(value)} "
            f"({type(problem).__name__}: {problem}). Return numbers, tensors, modules, or containers of them"
        ) from None
    return {"events": events}, result


def _join(spec: dict[str, Any]) -> None:
    """Take over the notebook's environment and folder, then join the group."""
    os.environ.clear()
    os.environ.update(spec["environment"])
    os.chdir(spec["folder"])
    sys.path[:] = spec["path"]
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, file=_keep_open(spec["stack"]), all_threads=False)
    faulthandler.enable(file=_keep_open(spec["crash"]))  # the notebook's error tells what it says

    import torch
    import torch.distributed as dist

    torch.set_num_threads(spec["threads"])
    dist.set_debug_level_from_env()
    here.DEVICE = torch.device(spec["device"])
    if here.DEVICE.type == "cuda":
        torch.cuda.set_device(here.DEVICE)
    store = dist.FileStore(spec["store"], spec["ranks"])
    dist.init_process_group(spec["backend"], store=store, rank=spec["rank"], world_size=spec["ranks"])


def _own_process_group() -> None:
    """The Stop button signals the kernel's whole process group: keep out of it."""
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _die_with(kernel: int, connection, forked: bool) -> None:
    """Leave when the notebook's process dies or lets go, also while the main thread sits in a collective."""
    if forked and sys.platform == "linux":
        server = os.getppid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the server leaves with the notebook
        if os.getppid() != server:
            os._exit(1)

    def watch() -> None:
        try:
            news, process = select.poll(), os.pidfd_open(kernel)
            news.register(process, select.POLLIN)  # readable: the process has ended
            news.register(connection.fileno(), 0)  # only whether the other end is closed
            if all(source != process for source, _ in news.poll()):
                time.sleep(_FAREWELL + 1.0)
        except (AttributeError, OSError):
            while _is_alive(kernel, forked):
                time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="watch the notebook").start()


def _is_alive(kernel: int, forked: bool) -> bool:
    if os.name == "nt":  # os.kill would end it; there, the closed pipe tells
        return True
    try:
        os.kill(kernel, 0)
    except OSError:
        return False
    return forked or os.getppid() == kernel


def _speak_through(out) -> None:
    """Standard output and error, and what C++ code writes, into the pipe, a line at a time."""
    if os.name == "nt":
        sys.stdout = sys.stderr = _MessageStream(out)
    else:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        out.close()
        for name, fd in (("stdout", 1), ("stderr", 2)):
            stream = open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
            setattr(sys, name, stream)
        faulthandler.enable(file=2)
    warnings.showwarning = _send_warning


class _MessageStream:
    """A text stream for systems where a pipe cannot stand in for standard output: each line is a message."""

    encoding = "utf-8"

    def __init__(self, connection) -> None:
        self._connection, self._line = connection, ""

    def write(self, text: str) -> int:
        self._line += text
        whole, newline, self._line = self._line.rpartition("\n")
        if newline:
            self._connection.send_bytes((whole + newline).encode())
        return len(text)

    def flush(self) -> None:
        if self._line:
            self._connection.send_bytes(self._line.encode())
            self._line = ""

    def isatty(self) -> bool:
        return False


def _send_warning(message, category, filename, lineno, file=None, line=None) -> None:
    if not here.is_a_rank():  # a fork of one, such as a DataLoader's worker, must not talk into its connection
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)
        return
    info = {"category": category.__name__, "message": str(message), "filename": filename, "lineno": lineno}
    try:
        here.CHANNEL.send("warning", info)
    except OSError:
        pass


def _new_randomness() -> None:
    """A fork inherits the generators of the server; Python reseeds its own, numpy does not."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


_OPEN: list[Any] = []  # files that must stay open as long as the process lives


def _keep_open(path: str):
    file = open(path, "ab", buffering=0)
    _OPEN.append(file)
    return file


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # the learner may have put anything there, also None
            pass
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)  # what C code printed


__all__ = ["live"]
