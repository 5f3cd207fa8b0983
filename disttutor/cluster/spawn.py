"""Ranks where nothing can be forked (Windows, macOS): each is a new Python that imports torch for itself.

The same interface as the fork server, some seconds slower: there, keep ranks in a Cluster. The new process finds the
notebook through a `multiprocessing` listener (a named pipe, or a socket file in a private folder) whose messages are
signed with a key that it reads from its standard input.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Client, Listener
from typing import Any

from disttutor.cluster.channel import Channel
from disttutor.cluster.server import _CODE, ServerGone, search_path

_CONNECT_SECONDS = 60.0


class SpawnedRank:
    """A rank that is a child process of the notebook; see `server.RankProcess`, whose interface this is."""

    sentinel = None  # nothing to wait on: `look` asks the system

    def __init__(self, process: subprocess.Popen, connection: Any, out: Any) -> None:
        self._process, self.channel, self.out = process, Channel(connection), out
        self.pid = process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    def look(self) -> bool:
        return self._process.poll() is not None

    def wait_for_pid(self, seconds: float) -> int:
        return self.pid

    def read_output(self) -> bytes | None:
        try:
            if os.name == "posix":
                return os.read(self.out.fileno(), 1 << 16)
            return self.out.recv_bytes() if self.out.poll() else None
        except BlockingIOError:
            return None
        except (EOFError, OSError):
            return b""

    def signal_stack(self) -> None:
        if hasattr(signal, "SIGUSR1") and not self.look():
            self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        if not self.look():
            try:
                os.killpg(self.pid, signal.SIGKILL)  # with what it started, once it has its own process group
            except (AttributeError, OSError):
                pass
            self._process.kill()

    def close(self) -> None:
        self.channel.close()
        self.out.close()
        _LEAVING.append(self._process)  # a process must be asked after its end, or it stays in the process table
        _LEAVING[:] = [process for process in _LEAVING if process.poll() is None]


_LEAVING: list[subprocess.Popen] = []


class Spawner:
    """Starts a new process for each rank."""

    def __init__(self) -> None:
        self.folder: str | None = None

    def start(self) -> None:
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="disttutor-")
            atexit.register(shutil.rmtree, self.folder, ignore_errors=True)

    def complaint(self) -> str:
        return ""

    def await_end(self, seconds: float) -> None:
        """Nothing stands between two ranks that could be gone."""

    def new_rank(self, trains: bool = True) -> SpawnedRank:
        self.start()
        key = secrets.token_bytes(32)
        with Listener(None if os.name == "nt" else f"{self.folder}/{secrets.token_hex(4)}", authkey=key) as listener:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"{_CODE}from disttutor.cluster import spawn; spawn.main()",
                 json.dumps({"path": search_path()})],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "TQDM_DISABLE": "1"},
            )  # fmt: skip
            word = {"address": listener.address, "key": key.hex(), "kernel": os.getpid()}
            process.stdin.write(json.dumps(word).encode())
            process.stdin.close()
            connection, out = self._accept(listener, process), self._accept(listener, process)
        if os.name == "posix":
            os.set_blocking(out.fileno(), False)
        return SpawnedRank(process, connection, out)

    @staticmethod
    def _accept(listener: Listener, process: subprocess.Popen) -> Any:
        """Its next connection; the wait for it must end when the process does."""
        socket = getattr(getattr(listener, "_listener", None), "_socket", None)
        if socket is not None:
            socket.settimeout(1.0)
        end = time.monotonic() + _CONNECT_SECONDS
        while True:
            try:
                return listener.accept()
            except TimeoutError:
                if process.poll() is not None or time.monotonic() > end:
                    process.kill()
                    raise ServerGone(f"a new Python process could not start (exit code {process.poll()})") from None


def main() -> None:
    """In the new process: connect to the notebook, then live as any rank does."""
    word = json.loads(sys.stdin.read())
    key = bytes.fromhex(word["key"])
    connection, out = (Client(word["address"], authkey=key) for _ in range(2))
    sys.stdin = open(os.devnull)
    from disttutor.cluster import rank_main

    rank_main.live(connection, out, kernel=word["kernel"], forked=False)


SPAWNER = Spawner()
