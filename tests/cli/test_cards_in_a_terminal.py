"""`disttutor cards` in a terminal of its own: single keys, and Ctrl-C."""

import os
import select
import subprocess
import sys
import time

import pytest

from disttutor.cards.progress import Progress
from disttutor.cards.progress.scheduling import Rating

pytest.importorskip("pty", reason="terminals are made here as Unix makes them")

LONGEST = 120       # seconds without a word: then it hangs


@pytest.fixture
def terminal(tmp_path):
    """`terminal(*command)` starts a program in a terminal of 80 columns: read, write and wait for it."""
    import fcntl
    import pty
    import struct
    import termios

    started = []

    def start(*command: str) -> "Terminal":
        outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        program = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
            env={**environment, "TERM": "xterm-256color", "DISTTUTOR_HOME": str(tmp_path)},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))     # so that Ctrl-C reaches it
        os.close(inner)
        started.append(Terminal(program, outer))
        return started[-1]

    yield start
    for one in started:
        one.program.kill()
        one.program.wait()
        os.close(one.end)


class Terminal:
    """program: what runs in it. end: the file descriptor of its other end."""

    def __init__(self, program: subprocess.Popen, end: int):
        self.program, self.end = program, end

    def until(self, words: str) -> str:
        """What comes until these words do, or until the program ends."""
        seen = b""
        while words.encode() not in seen:
            if not select.select([self.end], [], [], LONGEST)[0]:
                raise AssertionError(f"{words!r} does not come: {seen.decode()}")
            try:
                seen += os.read(self.end, 65536)
            except OSError:         # so Linux says that the program has ended
                break
        return seen.decode()

    def press(self, key: str) -> None:
        """Press a key once the program waits for one: what comes before, the terminal throws away."""
        import termios

        give_up = time.monotonic() + LONGEST
        while termios.tcgetattr(self.end)[3] & termios.ICANON:
            assert time.monotonic() < give_up, "it does not wait for a key"
            time.sleep(0.01)
        os.write(self.end, key.encode())


def test_a_review_by_single_keys_in_colour_left_by_ctrl_c(terminal, tmp_path):
    cards = terminal(sys.executable, "-m", "disttutor", "cards", "-d", "ai-ml")      # the one card of the note
    asked = cards.until("quit")
    assert "1 of 1 · ai-ml" in asked and "main goal of distributed training?" in asked
    assert "\x1b[1;36mEnter\x1b[0m show" in asked
    cards.press("\r")
    assert "forgot: again soon" in cards.until("quit")
    cards.press("1")
    assert "main goal" in cards.until("quit")
    cards.press("\x03")
    rest = cards.until("this does not come")
    assert "1 card: 0 remembered at once, 1 met again." in rest and "Traceback" not in rest
    assert cards.program.wait(LONGEST) == 0
    assert [review.rating for review in Progress(tmp_path).reviews] == [Rating.FORGOT]
