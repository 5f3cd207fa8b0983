"""Ruff finds nothing, in code and in lessons."""

import subprocess
import sys
from pathlib import Path


def test_ruff_finds_nothing():
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise", "."]
    done = subprocess.run(ruff, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
