"""The server process that ranks are forked from: everything is imported once, and a rank is a fork of it.

It is a process of its own, beside the notebook: forking the notebook itself would copy its threads' locks (and its
CUDA state) and dead-lock. Here nothing but imports has happened: no thread, no torch operation, no CUDA call.

The notebook's end of the control socket sends one datagram a rank ("rank", or "trains" if it should have all that
training needs), with three file descriptors: the connection for
messages, the pipe for what the rank prints, and the pipe on which this server tells how the rank fared
(its process id first; its wait status when it has ended).
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import shutil
import signal
import socket
import struct
import sys
from functools import partial
from multiprocessing.connection import Connection

from disttutor.cluster import hugepages

# What every rank needs, and then what training needs: an optimizer alone imports torch._dynamo, which takes as long as
# torch itself. The second part is imported in idle time, so that a first small run need not wait for it.
FIRST = ("torch", "torch.distributed", "cloudpickle", "disttutor.cluster.rank_main", "numpy.random", "disttutor.traces")
THEN = (
    "sympy",
    "torch._dynamo",
    "torch.nn.parallel",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch.distributed.pipelining",
    "torch.distributed.checkpoint",
    "torch.profiler._cupti_monitor",
    "torch.utils.data",
    "disttutor.plans",
    "disttutor.models",
    "disttutor.strategies",
)
IDLE = 0.5  # seconds without a request from which on time counts as idle


def detach() -> None:
    """Leave the notebook's process group and its Stop signal; allow no helper threads. Before any heavy import."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["TQDM_DISABLE"] = "1"  # a rank's bar is drawn by the notebook: see `here.progress`


def preload(name: str) -> None:
    """Import what ranks will need. What is missing is left to the rank, whose error then reaches the notebook."""
    try:
        importlib.import_module(name)
    except Exception as problem:  # a broken optional module must not keep the server from serving
        print(f"not preloaded: {name}: {type(problem).__name__}: {problem}", file=sys.stderr)


def main(control_fd: int, kernel: int, folder: str) -> None:
    """Serve until the notebook's process (`kernel`) is gone; `folder` is the private folder to remove then."""
    detach()
    control = socket.socket(fileno=control_fd)
    try:
        for name in FIRST:
            preload(name)
        Server(control, kernel, folder).serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # torch's own teardown takes seconds


class Server:
    """The loop: fork a rank for each request, tell how each rank ended, leave with the notebook."""

    def __init__(self, control: socket.socket, kernel: int, folder: str) -> None:
        self.control, self.kernel, self.folder = control, kernel, folder
        self.ranks: dict[int, int] = {}  # process id -> the pipe on which its end is told
        self.idle_work = [*(partial(preload, name) for name in THEN), _settle, hugepages.gather]
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)
        signal.set_wakeup_fd(self.wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.kernel_fd = _pidfd(kernel)

    def serve(self) -> None:
        waiting = [self.control, self.wake_read] + ([] if self.kernel_fd is None else [self.kernel_fd])
        while True:
            # Without a pidfd the parent is looked at twice a second; the socket alone would not tell, since a child
            # that the notebook forked (a DataLoader's worker) holds a copy of its end.
            impatient = self.kernel_fd is None or (self.idle_work and not self.ranks)
            ready, _, _ = select.select(waiting, [], [], IDLE if impatient else None)
            if not ready and self.idle_work and not self.ranks:
                self.idle_work.pop(0)()
            if self.kernel_fd in ready or os.getppid() != self.kernel:
                break
            if self.wake_read in ready:
                self._reap()
            if self.control in ready and not self._request():
                break
        for pid in self.ranks:
            _kill_group(pid)

    def _request(self) -> bool:
        message, fds, _, _ = socket.recv_fds(self.control, 4096, 3)
        if not message:
            return False
        connection, out, status = fds
        while message == b"trains" and len(self.idle_work) > 1:  # all but the last, which only saves time
            self.idle_work.pop(0)()
        pid = os.fork()
        if pid == 0:
            try:
                self._become_rank(connection, out, status)
            finally:
                os._exit(70)  # never back into the server's loop
        self.ranks[pid] = status
        if not _tell(status, pid):
            _kill_group(pid)  # the notebook has let go of it before it was there
        os.close(connection)
        os.close(out)
        return True

    def _become_rank(self, connection: int, out: int, status: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        mine = [self.wake_read, self.wake_write, status, *self.ranks.values()]
        for fd in mine + ([] if self.kernel_fd is None else [self.kernel_fd]):
            os.close(fd)
        self.control.close()
        from disttutor.cluster import rank_main

        ends = Connection(connection), Connection(out, readable=False)
        rank_main.live(*ends, kernel=self.kernel, forked=True)

    def _reap(self) -> None:
        try:
            while os.read(self.wake_read, 512):
                pass
        except BlockingIOError:
            pass
        while self.ranks:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return
            _kill_group(ended.si_pid)  # what the rank had started; its number is not free again before the next line
            _, wait_status = os.waitpid(ended.si_pid, 0)
            status = self.ranks.pop(ended.si_pid)
            _tell(status, os.waitstatus_to_exitcode(wait_status))
            os.close(status)


def _settle() -> None:
    gc.collect()
    gc.freeze()  # the collector then leaves these pages alone, and ranks go on sharing them


def _tell(fd: int, number: int) -> bool:
    try:
        os.write(fd, struct.pack("!q", number))
    except OSError:
        return False  # the notebook no longer wants to know
    return True


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except OSError:
            pass


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
