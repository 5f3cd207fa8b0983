"""What a run sends to its ranks: a function and its arguments, checked before any process starts.

Functions and classes of the notebook travel by value, with every variable they use. If one of those cannot travel
(an open file, a lock), the error names that variable; if one is very large, a warning does.
"""

from __future__ import annotations

import dis
import functools
import inspect
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from disttutor.cluster.channel import Parcel
from disttutor.cluster.pickles import pack

LARGE = 64 << 20  # bytes of one captured variable from which on a warning names it


def pack_call(function: Callable[..., Any], arguments: tuple, ranks: int) -> tuple[Parcel, dict[str, list[str]]]:
    """The parcel for the ranks, and the source lines of the cells it comes from.

    Raises TypeError if `function` cannot be called with (rank, *arguments), or if something cannot be sent.
    """
    check_call(function, arguments)
    sources: dict[str, list[str]] = {}
    try:
        parcel = pack((function, arguments), sources)
    except Exception as problem:  # pickling raises anything
        raise TypeError(_refusal(function, arguments, problem)) from None
    if parcel.nbytes > LARGE:
        _warn_of_large(function, ranks)
    return parcel, sources


_TRAINING = (b"optim", b"strategies", b"models", b"labs", b"DataParallel", b"fsdp", b"fully_shard", b"parallelize",
             b"pipelining", b"compile", b"checkpoint")  # fmt: skip


def likely_trains(parcel: Parcel) -> bool:
    """Whether the code in it names what training needs. A wrong guess costs time, no more."""
    return any(word in bytes(parcel.body) for word in _TRAINING)


def check_call(function: Callable[..., Any], arguments: tuple) -> None:
    """Raise TypeError unless every rank can call `function(rank, *arguments)`."""
    if not callable(function):
        raise TypeError(
            f"the first argument must be a function that every rank runs, not {function!r} "
            f"({type(function).__name__}). If you called it yourself, leave the brackets away: run(train, ranks=2)"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a function in C without a signature
    try:
        signature.bind(0, *arguments)
    except TypeError as problem:
        given = ", ".join(["rank", *(_short(a, 20) for a in arguments)])
        raise TypeError(
            f"{name_of(function)}{signature} would be called as {name_of(function)}({given}): {problem}. "
            "Its first parameter is the rank; the others are what follows the function in run(...)"
        ) from None


def name_of(function: Any) -> str:
    """How the learner calls it."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return getattr(function, "__name__", type(function).__name__)


def _short(value: Any, longest: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= longest else type(value).__name__


# ------------------------------------------------------------------------------------------ naming the culprit


def _refusal(function: Callable[..., Any], arguments: tuple, problem: Exception) -> str:
    for number, argument in enumerate(arguments, start=1):
        if found := _culprit(argument, f"argument {number}", set()):
            return f"{found[0]} of run(...) cannot be sent to the ranks: it is {_what(found[1])}. {_advice(found[1])}"
    if found := _culprit(function, name_of(function), set()):
        path, value = found
        if value is not function:
            return (
                f"{name_of(function)} cannot be sent to the ranks, because it uses {path}, which is {_what(value)}. "
                f"{_advice(value)}"
            )
    return f"{name_of(function)} cannot be sent to the ranks: {type(problem).__name__}: {problem}"


def _culprit(value: Any, path: str, seen: set[int]) -> tuple[str, Any] | None:
    """The innermost thing in `value` that cannot be sent, with its name; None if all of it can."""
    if id(value) in seen or len(seen) > 10_000:
        return None
    seen.add(id(value))
    try:
        pack(value)
        return None
    except Exception:
        for name, part in parts(value, path):
            if found := _culprit(part, name, seen):
                return found
    return path, value


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The named things that travel with `value`: what a function uses, what a container or an object holds."""
    if isinstance(value, types.MethodType):
        yield from [(path, value.__func__), (f"the object of {path}", value.__self__)]
    elif isinstance(value, types.FunctionType):
        yield from captured(value).items()
        yield from ((f"the default {d!r:.40} of {path}", d) for d in value.__defaults__ or ())
    elif isinstance(value, functools.partial):
        yield path, value.func
        yield from ((f"{path}'s argument {i}", a) for i, a in enumerate(value.args, start=1))
        yield from value.keywords.items()
    elif isinstance(value, type):
        for name, member in vars(value).items():
            member = getattr(member, "__func__", member) if isinstance(member, staticmethod | classmethod) else member
            if not (name.startswith("__") and not isinstance(member, types.FunctionType)):
                yield f"{path}.{name}", member
    elif isinstance(value, dict):
        yield from ((f"{path}[{k!r:.40}]", v) for k, v in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"{path}[{i}]", v) for i, v in enumerate(value))
    elif isinstance(getattr(value, "__dict__", None), dict):
        yield from ((f"{path}.{k}", v) for k, v in vars(value).items())
        if type(value).__module__ == "__main__":
            yield type(value).__name__, type(value)


def captured(function: types.FunctionType) -> dict[str, Any]:
    """The variables of the notebook (or of an enclosing function) that a function uses, by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # not set yet
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in function.__globals__:
                found[step.argval] = function.__globals__[step.argval]
    return found


def _what(value: Any) -> str:
    kind = type(value)
    if isinstance(value, io.IOBase):
        return f"an open file ({_short(getattr(value, 'name', value))})"
    if isinstance(value, types.GeneratorType):
        return f"a generator ({value.__name__}), which cannot be copied half-way"
    if "lock" in kind.__name__.lower():
        return f"a lock ({kind.__module__}.{kind.__name__}), which means nothing in another process"
    return f"of type {kind.__module__}.{kind.__qualname__}, which stays in the process that made it"


def _advice(value: Any) -> str:
    if isinstance(value, io.IOBase):
        return "Open the file inside the function, or hand over what you read from it"
    if isinstance(value, types.GeneratorType):
        return "Hand over a list, or make the generator inside the function"
    return "Make it inside the function, so that every rank has its own"


# ---------------------------------------------------------------------------------------- very large variables


def _warn_of_large(function: Callable[..., Any], ranks: int) -> None:
    for path, value in _reachable(function):
        size = _nbytes(value)
        if size > LARGE:
            warnings.warn(
                f"{name_of(function)} uses {path} ({size / 2**20:.0f} MiB): each run copies it to each of the {ranks} "
                "ranks. Load it or make it inside the function, or keep it in the ranks of a Cluster",
                stacklevel=_outside(),
            )


def _reachable(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """What a function of the notebook uses, also by way of other functions and classes of the notebook."""
    waiting: list[tuple[str, Any]] = [(name_of(function), function)]
    seen: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        for name, part in parts(value, path):
            if id(part) not in seen:
                seen.add(id(part))
                yield name, part
                if isinstance(part, types.FunctionType | type) and part.__module__ == "__main__":
                    waiting.append((name, part))


def _nbytes(value: Any) -> int:
    if isinstance(value, bytes | bytearray | str):
        return len(value)
    if isinstance(getattr(value, "nbytes", None), int):  # a tensor or an array
        return value.nbytes
    if isinstance(value, list | tuple):
        return sum(map(_nbytes, value))
    if isinstance(value, dict):
        return sum(map(_nbytes, value.values()))
    if callable(getattr(value, "state_dict", None)):
        try:
            return _nbytes(value.state_dict())
        except Exception:  # only an estimate
            return 0
    return 0


def _outside() -> int:
    """The stack level, for the function that warns, of the first frame that is not ours: the learner's line."""
    frame, level = sys._getframe(1), 1  # level 1 is the line that warns
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    return level
