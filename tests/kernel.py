"""A real notebook kernel for tests: run cells, see what a learner would see, press Stop, kill it."""

import os
import queue
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from jupyter_client import KernelManager

ROOT = Path(__file__).resolve().parents[1]
START = 60.0


@dataclass
class Ran:
    """What one cell did."""

    status: str = "running"
    text: str = ""  # all it printed
    pieces: list[tuple[float, str]] = field(default_factory=list)  # what was printed when, seconds after the start
    error: str = ""  # name of the exception
    message: str = ""
    traceback: str = ""  # as shown, without colours
    displays: list[dict] = field(default_factory=list)
    result: str | None = None
    seconds: float = 0.0


class Kernel:
    """One ipykernel, driven over jupyter_client as JupyterLab drives it."""

    def __init__(self, folder: Path | str | None = None, env: dict[str, str] | None = None) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.kernel_spec.argv[0] = sys.executable
        environment = {**os.environ, **(env or {})}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        self.manager.start_kernel(cwd=str(folder or ROOT), env=environment)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=START)

    @property
    def pid(self) -> int:
        return self.manager.provisioner.process.pid

    def send(self, code: str) -> str:
        """Begin a cell; `collect` waits for it."""
        return self.client.execute(code, store_history=True)

    def collect(self, message: str, timeout: float = 60.0, until: str | None = None) -> Ran:
        """Gather what the cell shows until it is done (or until `until` has been printed)."""
        ran, start = Ran(), time.monotonic()
        while True:
            rest = start + timeout - time.monotonic()
            try:
                news = self.client.get_iopub_msg(timeout=max(0.01, rest))
            except queue.Empty:
                raise TimeoutError(f"the cell is still running after {timeout} s; so far: {ran.text!r}") from None
            if news["parent_header"].get("msg_id") != message:
                continue
            kind, content = news["msg_type"], news["content"]
            if kind == "stream":
                ran.text += content["text"]
                ran.pieces.append((time.monotonic() - start, content["text"]))
                if until is not None and until in ran.text:
                    return ran
            elif kind == "error":
                ran.error, ran.message = content["ename"], content["evalue"]
                ran.traceback = _plain("\n".join(content["traceback"]))
            elif kind in ("display_data", "update_display_data"):
                ran.displays.append(content["data"])
            elif kind == "execute_result":
                ran.result = content["data"].get("text/plain")
            elif kind == "status" and content["execution_state"] == "idle":
                ran.seconds = time.monotonic() - start
                ran.status = "error" if ran.error else "ok"
                return ran

    def run(self, code: str, timeout: float = 60.0) -> Ran:
        """Run a cell to its end."""
        return self.collect(self.send(code), timeout)

    def ok(self, code: str, timeout: float = 60.0) -> Ran:
        """Run a cell that must not fail."""
        ran = self.run(code, timeout)
        assert ran.status == "ok", f"{ran.error}: {ran.message}\n{ran.traceback}"
        return ran

    def interrupt(self) -> None:
        """The Stop button."""
        self.manager.interrupt_kernel()

    def family(self) -> list[psutil.Process]:
        """Every living process that descends from the kernel."""
        try:
            return [p for p in psutil.Process(self.pid).children(recursive=True) if alive(p)]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer does it; only the kernel itself, not what it started."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(processes: list[psutil.Process], within: float) -> list[psutil.Process]:
    """Wait until all of these have ended, at most `within` seconds; returns those that have not."""
    end = time.monotonic() + within
    while (left := [p for p in processes if alive(p)]) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _plain(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)
