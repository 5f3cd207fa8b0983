"""Writing events: one file for each kernel, one line for each event, on the disk before the answer counts as given.

No other process ever writes into the file, so nothing needs a lock and two kernels never wait for each other, also on a
network's home directory. What cannot be written is kept in memory and tried again with the next event.
"""

import errno
import os
from pathlib import Path
from uuid import uuid4

from disttutor.cards.progress.events import Event, encode

SUFFIX = ".jsonl"
# After these the same file can go on once there is space; after any other error the next event begins a new file.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Writer:
    """Appends events to a file of this process in `folder`, which is made when it is first needed.

    unsaved: events that are in memory only; notice: why, in a sentence or two, or "".
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.unsaved: list[Event] = []
        self.notice = ""
        self._file: int | None = None
        self._path = folder
        self._process = 0
        self._torn = False

    def append(self, event: Event) -> None:
        """Writes the event, and before it those that could not be written. Never raises an OSError: see `notice`."""
        self.unsaved.append(event)
        self.flush()

    def flush(self) -> None:
        """Tries to write what is in memory only."""
        try:
            while self.unsaved:
                self._write(encode(self.unsaved[0]))
                del self.unsaved[0]
        except OSError as error:
            why = f"{error.strerror or error}: {error.filename}" if error.filename else error.strerror or error
            self.notice = (f"Progress is kept in memory only, since {self.folder} cannot be written ({why}). It is "
                           "tried again with the next answer; what is not written when this kernel ends is lost.")
        else:
            self.notice = ""

    def _write(self, line: bytes) -> None:
        try:
            file = self._open()
            # Half a line may stand at the end of the file: a new line keeps this event whole.
            data = b"\n" + line if self._torn else line
            self._torn = True
            while data:
                data = data[os.write(file, data):]
            os.fsync(file)
            self._torn = False
        except OSError as error:
            if error.errno not in _NO_SPACE:
                self.close()
            raise

    def _open(self) -> int:
        """This process's file: a new one after a fork, and where the old one was moved away or removed."""
        if self._file is None or self._process != os.getpid() or not self._is_there(self._file):
            self.close()
            private_folder(self.folder)
            self._path = self.folder / f"{uuid4().hex}{SUFFIX}"
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._process = os.getpid()
            sync_folder(self.folder)
        return self._file

    def _is_there(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        """Ends this file; the next event begins a new one."""
        file, self._file, self._torn = self._file, None, False
        if file is not None:
            try:
                os.close(file)
            except OSError:
                pass        # a network's file system may tell here what a write has told already


def private_folder(folder: Path) -> None:
    """Makes the folder and the one above it, for their owner only, where they are not there yet."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Makes the name of a new file survive a power failure, where the file system can."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError:
        pass
