"""Files that are written whole or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file: a full disk or a crash must not leave half a file where a whole one was. Raises OSError."""
    half = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        half.write_bytes(content)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
