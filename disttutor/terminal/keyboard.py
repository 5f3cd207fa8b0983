"""Keys and lines from whoever sits at the terminal, or from a pipe, where each answer is a line."""

import sys


class Keyboard:
    """Reads what `sys.stdin` gives. Both ways of leaving raise: Ctrl-C KeyboardInterrupt, Ctrl-D and a pipe's end
    EOFError."""

    def __init__(self) -> None:
        self.has_keys = sys.stdin.isatty()
        self._typed_ahead = ""

    def key(self) -> str:
        """One key as a small letter, Enter and the space bar as ""; in a pipe the first letter of the next line.

        A key that has no letter, as an arrow, is the whole of what the terminal sends for it.
        """
        if not self.has_keys:
            return self.line().strip()[:1].lower()
        import typer

        # The terminal hands over all that was pressed since the last time, but an arrow's letters are one key.
        typed = self._typed_ahead or typer.getchar()
        if typed.startswith("\x1b"):
            self._typed_ahead = ""
            return typed
        key, self._typed_ahead = typed[0], typed[1:]
        if key == "\x03":
            raise KeyboardInterrupt
        if key == "\x04":
            raise EOFError
        return "" if key in "\r\n " else key.lower()

    def line(self) -> str:
        """A line, without its end."""
        self._typed_ahead = ""
        if self.has_keys:
            return input()      # which lets people correct what they type
        if not (line := sys.stdin.readline()):
            raise EOFError
        return line.rstrip("\r\n")
