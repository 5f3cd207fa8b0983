"""What this machine has, and what is wrong with it, in sentences a learner can act on.

Every check is a small function that yields findings. A finding says what was seen; if that stands in the way, also
what to do about it.
"""

import os
import platform
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from disttutor.lessons import shipped

TESTED = ("torch", "jupyterlab", "ipywidgets")

# Measured on Linux: a process that has imported torch holds some 220 MB, a notebook with pictures twice that; a rank
# that is forked from such a process adds 40 to 60 MB until it trains, a rank that is spawned holds all of it itself.
MB = 1_000_000
NOTEBOOK, SERVER, FORKED_RANK, SPAWNED_RANK = 450 * MB, 220 * MB, 100 * MB, 300 * MB
SHARED_MEMORY = 64 * MB


@dataclass(frozen=True)
class Finding:
    """`state`: "fine", "note" (good to know, nothing breaks) or "wrong" (lessons will not run); `advice` what to do."""

    state: str
    text: str
    advice: str = ""


def fine(text: str) -> Finding:
    return Finding("fine", text)


def note(text: str, advice: str = "") -> Finding:
    return Finding("note", text, advice)


def wrong(text: str, advice: str) -> Finding:
    return Finding("wrong", text, advice)


def examine(folder: Path | None = None) -> Iterator[Finding]:
    """Every finding about this machine, the last check being two real ranks; `folder`: where the learner works."""
    folder = folder or Path.cwd()
    checks: tuple[Callable[[], Iterable[Finding]], ...] = (
        python, versions, cores, memory, gpus, backends, loopback, shared_memory, temporary_folder, kernel,
        lambda: shadowing_files(folder), real_ranks,
    )  # fmt: skip
    for check in checks:
        try:
            yield from check()
        except Exception as error:  # a check that fails is a finding, and the other checks still run
            subject = check.__name__.replace("_", " ").replace("<lambda>", "the files here")
            yield wrong(f"Looking at {subject} failed: {type(error).__name__}: {error}", "Report this, whole as it is.")


def python() -> Iterator[Finding]:
    yield fine(f"Python {platform.python_version()} on {platform.system()} ({platform.machine()}), {sys.prefix}.")


def versions() -> Iterator[Finding]:
    tested = dict(re.findall(r"^([\w.-]+)==(.+)$", shipped("constraints.txt").read_text(), flags=re.M))
    for name in TESTED:
        here = metadata.version(name)
        if _minor(here) == _minor(tested[name]):
            yield fine(f"{name} {here}; the lessons are tested with {tested[name]}.")
        elif _minor(here) < _minor(tested[name]) and name == "torch":
            yield wrong(
                f"torch {here} is older than {tested[name]}, with which the lessons are tested.",
                f"Install the tested one: pip install torch=={tested[name]}",
            )
        else:
            yield note(f"{name} is {here}; the lessons are tested with {tested[name]}.", "If a picture or a control "
                       f"fails, install the tested one: pip install {name}=={tested[name]}")  # fmt: skip


def _minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def cores() -> Iterator[Finding]:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if count >= 4:
        yield fine(f"{count} processor cores: four ranks run side by side.")
    else:
        yield fine(
            f"{_count(count, 'processor core')}: four ranks take turns on {'it' if count == 1 else 'them'}. They train "
            "just the same; timelines are also shown replayed, a core for each rank, and in slow motion."
        )


def memory() -> Iterator[Finding]:
    from disttutor.cluster.server import can_fork

    needed = NOTEBOOK + (SERVER + 4 * FORKED_RANK if can_fork() else 4 * SPAWNED_RANK)
    free = available_memory()
    if free >= needed:
        yield fine(f"{_gb(free)} of memory are free; a notebook with four ranks needs about {_gb(needed)}.")
    else:
        yield wrong(
            f"Only {_gb(free)} of memory are free; a notebook with four ranks needs about {_gb(needed)}.",
            "Close other programs, above all other notebooks' kernels, or use two ranks.",
        )


def available_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that new processes can have: what the system has free, or less where a container's limit is nearer."""
    import psutil

    free = psutil.virtual_memory().available
    try:
        limit, used, parts = ((cgroup / f"memory.{name}").read_text() for name in ("max", "current", "stat"))
    except OSError:
        return free
    if limit.strip() == "max":
        return free
    cached = re.search(r"^inactive_file (\d+)", parts, flags=re.M)  # file contents that make room when asked to
    return min(free, max(0, int(limit) - int(used) + int(cached[1] if cached else 0)))


def gpus() -> Iterator[Finding]:
    import torch

    count = torch.cuda.device_count()
    names = ", ".join(torch.cuda.get_device_name(i) for i in range(count))
    if count > 1:
        yield fine(f"{count} GPUs ({names}): up to {count} ranks can have one each.")
    elif count == 1:
        yield fine(f"One GPU ({names}): several ranks share it, or run on the CPU as the lessons do.")
    else:
        yield fine("No GPU that PyTorch can use: the ranks run on the CPU. The lessons are made for that.")


def backends() -> Iterator[Finding]:
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_gloo_available():
        yield wrong(
            "This PyTorch is built without the gloo backend, so ranks on the CPU cannot talk to each other.",
            "Install a PyTorch that has it: pip's builds for Linux, macOS and Windows do.",
        )
    elif dist.is_nccl_available():
        yield fine("Ranks can talk through gloo (on the CPU) and through nccl (where each has a GPU of its own).")
    else:
        yield fine("Ranks can talk through gloo (on the CPU). nccl, for GPUs, is not in this build of PyTorch.")


def loopback() -> Iterator[Finding]:
    import psutil

    states = psutil.net_if_stats()
    names = [
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(a.family == socket.AF_INET and a.address == "127.0.0.1" for a in addresses)
    ]
    up = [name for name in names if name not in states or states[name].isup]
    advice = "Bring it up (on Linux, as root: ip link set lo up) or ask who runs this machine or container."
    if not up:
        yield wrong("The loopback network (127.0.0.1), over which the ranks talk, is not there or not up.", advice)
        return
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        yield wrong(f"The loopback network ({up[0]}) is up, but a connection over it fails: {error}.", advice)
    else:
        yield fine(f"The loopback network ({up[0]}) works. The ranks talk over it; nobody outside can reach it.")


def shared_memory(folder: Path = Path("/dev/shm")) -> Iterator[Finding]:
    if not folder.exists():
        return  # only Linux has it there
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if free < SHARED_MEMORY:
        yield note(
            f"Only {_gb(free)} of shared memory ({folder}) are free.",
            "Large tensors between processes may not fit. In Docker: --shm-size=1g.",
        )
    else:
        yield fine(f"{_gb(free)} of shared memory ({folder}) are free.")


def temporary_folder() -> Iterator[Finding]:
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "meeting point").write_bytes(b"x" * 4096)
    except OSError as error:
        yield wrong(
            f"Nothing can be written to the temporary folder, where the ranks meet: {error}.",
            "Free some space there, or set TMPDIR to a folder of yours that can be written to.",
        )
    else:
        yield fine("The temporary folder, where the ranks meet, can be written to.")


def kernel() -> Iterator[Finding]:
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        yield wrong("Jupyter has no kernel called python3.", f"Install it: {sys.executable} -m pip install ipykernel")
        return
    # A bare "python" means the one that JupyterLab itself runs in.
    if Path(program).is_absolute() and os.path.realpath(program) != os.path.realpath(sys.executable):
        yield wrong(
            f"Notebooks would run in another Python ({program}) than this one ({sys.executable}).",
            f"Point them here: {sys.executable} -m ipykernel install --sys-prefix",
        )
    else:
        yield fine("Notebooks run in this same Python.")


def shadowing_files(folder: Path) -> Iterator[Finding]:
    """Files beside a notebook that Python would import in the place of a library."""
    libraries = {*sys.stdlib_module_names, *metadata.packages_distributions()} - {"disttutor"}
    libraries = {name for name in libraries if not name.startswith("_")}
    here = {path.stem: path.name for path in sorted(folder.glob("*.py"))}
    here |= {path.parent.name: f"{path.parent.name}/" for path in sorted(folder.glob("*/__init__.py"))}
    hiding = sorted(libraries & here.keys())
    if not hiding:
        yield fine("No file in this folder hides a library module.")
    for name in hiding:
        yield wrong(
            f"{here[name]} in {folder} hides the library module {name}: notebooks here would import your file instead, "
            "and kernel or ranks may not start.",
            f"Rename it, for example to my_{here[name]}",
        )


def _sum_of_ranks(rank: int) -> float:
    import torch
    import torch.distributed as dist

    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    return total.item()


def real_ranks(ranks: int = 2, timeout: float = 120.0) -> Iterator[Finding]:
    """Start real ranks and let them add up 1 + 2 + ... over the network."""
    from disttutor.cluster import RankError, run

    try:
        answers = run(_sum_of_ranks, ranks=ranks, timeout=timeout)
    except RankError as error:
        yield wrong(f"Starting {ranks} ranks failed: {error}", "Mend what is said above first; then try again.")
        return
    expected = ranks * (ranks + 1) / 2
    if list(answers) == [expected] * ranks:
        yield fine(f"{ranks} ranks started, added up their numbers and agree ({answers.seconds:.1f} s).")
    else:
        yield wrong(
            f"{ranks} ranks started, but their all-reduce gave {list(answers)} and not {expected} everywhere.",
            "Install the tested PyTorch again; if that does not help, report it.",
        )


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
