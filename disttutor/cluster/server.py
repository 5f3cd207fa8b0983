"""The notebook's side of the fork server: start it (in the background), ask it for ranks.

The server is a child process of the notebook with torch already imported (`boot`). Asking for a rank costs a
millisecond; the first time, the request waits in the socket until the imports are done. The control socket is an
unnamed pair: there is no address that anybody else could connect to.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Pipe
from pathlib import Path

from disttutor.cluster.channel import Channel

_CODE = "import sys, json; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "


def can_fork() -> bool:
    """Whether this system has what the fork server needs (Linux has; Windows not; macOS dislikes forking torch)."""
    return sys.platform not in ("win32", "darwin", "emscripten") and hasattr(socket, "send_fds")


def search_path() -> list[str]:
    """`sys.path` for a new process of ours: the notebook's, but nothing in its own folder can shadow a library.

    A file called `queue.py` beside the notebook must not reach the server's imports; ranks get the notebook's
    own path afterwards.
    """
    package = str(Path(__file__).resolve().parents[2])
    try:
        here = os.getcwd()
        rest = [p for p in sys.path if p and os.path.abspath(p) != here]
    except FileNotFoundError:  # deleted, so nothing in it can shadow anything
        rest = [p for p in sys.path if os.path.isabs(p)]
    return [p for p in rest if p != package] + [package]


class RankProcess:
    """A rank as the notebook holds it: messages, printed text, and how it ended."""

    def __init__(self, connection, out, status) -> None:
        self.channel, self.out, self._status = Channel(connection), out, status
        self.pid: int | None = None
        self.exit_code: int | None = None  # negative: the signal that killed it
        self.ended = False
        self._looking = threading.Lock()  # the run's thread, and another that asks for `pids`

    @property
    def sentinel(self):
        """Something to wait on: readable when there is news about the process. None: call `look` now and then."""
        return self._status

    def look(self) -> bool:
        """Take in the news about the process; True once it has ended."""
        with self._looking:
            while not self.ended and self._status.poll():
                try:
                    number = os.read(self._status.fileno(), 8)
                except OSError:
                    number = b""
                if not number:
                    self.ended = True
                elif self.pid is None:
                    (self.pid,) = struct.unpack("!q", number)
                else:
                    (self.exit_code,) = struct.unpack("!q", number)
                    self.ended = True
        return self.ended

    def wait_for_pid(self, seconds: float) -> int | None:
        if self.pid is None and self._status.poll(seconds):
            self.look()
        return self.pid

    def kill(self) -> None:
        """SIGKILL to the rank and all it started: a rank inside a collective listens to nothing else."""
        if self.look() or self.pid is None:
            return  # it has ended, or is not forked yet: if nobody reads its number then, the server ends it
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except OSError:
                pass

    def signal_stack(self) -> None:
        """Ask the rank to write down its Python stack (it does so even inside C++ code)."""
        if self.pid is not None and not self.look():
            try:
                os.kill(self.pid, signal.SIGUSR1)
            except OSError:
                pass

    def read_output(self) -> bytes | None:
        """What the rank has printed since; None if nothing, empty bytes if nothing more will come."""
        try:
            return os.read(self.out.fileno(), 1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def close(self) -> None:
        for end in (self.channel, self.out, self._status):
            end.close()


class ForkServer:
    """One server for one notebook process; started again by itself if it is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._owner: int | None = None
        self._control: socket.socket | None = None
        self._errors = None
        self.folder: str | None = None

    def start(self) -> None:
        """Start the server if none runs. Returns at once; its imports go on in the background."""
        with self._lock:
            if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
                return
            self._forget()
            self.folder = tempfile.mkdtemp(prefix="disttutor-")  # mode 0700
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            arguments = json.dumps({"path": search_path()})
            code = _CODE + (
                f"from disttutor.cluster import boot; boot.main({theirs.fileno()}, {os.getpid()}, {self.folder!r})"
            )
            self._errors = tempfile.TemporaryFile()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(theirs.fileno(),),
            )
            theirs.close()
            self._control, self._owner = ours, os.getpid()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def new_rank(self, trains: bool = True) -> RankProcess:
        """Ask for one more rank; it is not there yet when this returns.

        `trains`: it waits until all that training needs has been imported, instead of importing that by itself.
        """
        self.start()
        connection, their_connection = Pipe()
        out, their_out = Pipe(duplex=False)
        status, their_status = Pipe(duplex=False)
        theirs = (their_connection, their_out, their_status)
        try:
            with self._lock:
                socket.send_fds(self._control, [b"trains" if trains else b"rank"], [end.fileno() for end in theirs])
        except OSError as problem:
            for end in (connection, out, status):
                end.close()
            raise ServerGone(self.complaint()) from problem
        finally:
            for end in theirs:
                end.close()
        os.set_blocking(out.fileno(), False)
        return RankProcess(connection, out, status)

    def complaint(self) -> str:
        """What the server wrote to its error output: why it could not import or start."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()[-2000:]

    def await_end(self, seconds: float) -> None:
        """Wait for a server that has closed its connections to be gone for the system too: `start` then starts one."""
        if self._process is not None and self._owner == os.getpid():
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                pass

    def _forget(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._errors is not None:
            self._errors.close()
        if self.folder is not None and self._owner == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)
        self._process = self._control = self._errors = self.folder = None

    def stop(self) -> None:
        """End the server and with it every rank."""
        with self._lock:
            process = self._process if self._owner == os.getpid() else None
            self._forget()  # first: a kernel that is told to leave may be killed before the next lines
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


class ServerGone(RuntimeError):
    """The fork server has ended by itself; the text is what it said."""


SERVER = ForkServer()


def launcher():
    """The way ranks are started on this system: an object with `new_rank()`, `start()`, `await_end()`, `folder`."""
    if can_fork():
        return SERVER
    from disttutor.cluster.spawn import SPAWNER

    return SPAWNER


def prewarm() -> None:
    """Start what ranks are forked from, in the background: the first run then does not wait for `import torch`.

    Returns at once (about 10 ms). Does nothing where ranks are spawned (Windows, macOS) or when it runs already.
    """
    if can_fork():
        SERVER.start()


atexit.register(SERVER.stop)
