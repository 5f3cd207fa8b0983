"""Messages between the notebook and one rank: a kind, a small dict, and a value that may be huge.

A message is one small pickled head and, where there is a value, its pickle and the memory of its tensors, each sent
straight from where it lies. One `multiprocessing` connection each way; nothing here knows what the messages mean.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Parcel:
    """A value made ready to travel: its pickle, and the memory of its tensors and arrays beside it."""

    body: bytes = b""
    buffers: list[Any] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return len(self.body) + sum(memoryview(b).nbytes for b in self.buffers)


def aligned(nbytes: int, to: int = 64) -> memoryview:
    """New memory that begins where torch would let a tensor begin, so that one can be laid over it."""
    memory = bytearray(nbytes + to)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % to
    return memoryview(memory)[start : start + nbytes]


class Channel:
    """One end of the connection to a rank (or, in the rank, to the notebook)."""

    def __init__(self, connection) -> None:
        self.connection = connection
        self._sending = threading.Lock()

    def send(self, kind: str, info: dict[str, Any] | None = None, parcel: Parcel | None = None) -> None:
        """Send one message whole. Raises OSError (BrokenPipeError) when the other side is gone."""
        buffers = parcel.buffers if parcel else ()
        head = pickle.dumps((kind, info or {}, None if parcel is None else len(buffers)), protocol=5)
        with self._sending:
            self.connection.send_bytes(head)
            if parcel is not None:
                self.connection.send_bytes(parcel.body)
                for buffer in buffers:
                    self._send_memory(memoryview(buffer))

    def receive(self) -> tuple[str, dict[str, Any], Parcel | None]:
        """Wait for one message. Raises EOFError or OSError when the other side is gone."""
        kind, info, buffers = pickle.loads(self.connection.recv_bytes())
        if buffers is None:
            return kind, info, None
        body = self.connection.recv_bytes()
        return kind, info, Parcel(body, [self._receive_memory() for _ in range(buffers)])

    # Where the connection is a plain file descriptor, memory is written from and read into where it lies;
    # multiprocessing alone would hold it twice, and on Windows, where it must, in pieces.
    _PIECE = 1 << 22

    def _send_memory(self, memory: memoryview) -> None:
        memory = memory.cast("B") if memory.nbytes else memoryview(b"")
        self.connection.send_bytes(pickle.dumps(memory.nbytes))
        if os.name == "posix":
            sent = 0
            while sent < memory.nbytes:
                sent += os.write(self.connection.fileno(), memory[sent:])
        else:
            for start in range(0, memory.nbytes, self._PIECE):
                self.connection.send_bytes(memory[start : start + self._PIECE])

    def _receive_memory(self) -> memoryview:
        memory = aligned(pickle.loads(self.connection.recv_bytes()))
        if os.name == "posix":
            rest = memory
            while rest.nbytes:
                count = os.readv(self.connection.fileno(), [rest])
                if count == 0:
                    raise EOFError
                rest = rest[count:]
        else:
            for start in range(0, len(memory), self._PIECE):
                self.connection.recv_bytes_into(memory, start)
        return memory

    def fileno(self) -> int:
        return self.connection.fileno()

    def close(self) -> None:
        try:
            self.connection.close()
        except OSError:
            pass
