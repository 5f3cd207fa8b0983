"""Files that are written whole or not at all."""

import os
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file: a full disk or a crash must not leave half a file where a whole one was.

    private: nobody else may read it. Raises OSError.
    """
    half = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    file = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600 if private else 0o666)
    try:
        with open(file, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
