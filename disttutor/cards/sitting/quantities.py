"""A number as a learner types it: 1,234 or 1e9, 3/11, 12.5 %, 2 GiB, 7 billion, with or without its unit."""

import math
import re
import unicodedata

LARGE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
         "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
SMALL = {"": 1.0, "m": 1e-3, "μ": 1e-6, "u": 1e-6, "n": 1e-9}
WORDS = {"thousand": 1e3, "lakh": 1e5, "lakhs": 1e5, "million": 1e6, "crore": 1e7, "crores": 1e7, "billion": 1e9,
         "bn": 1e9, "trillion": 1e12}
SHORT = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}       # 7B parameters

# unit: what it measures, and how much of that it is; a number alone measures ""
UNITS = {"": ("", 1.0), "x": ("", 1.0), "*": ("", 1.0), "times": ("", 1.0), "fold": ("", 1.0), "%": ("", 0.01),
         "percent": ("", 0.01), "per cent": ("", 0.01), "min": ("s", 60.0), "minute": ("s", 60.0), "h": ("s", 3600.0),
         "minutes": ("s", 60.0), "hour": ("s", 3600.0), "hours": ("s", 3600.0), "day": ("s", 86400.0),
         "days": ("s", 86400.0)}
for _kind, _prefixes, _names in (
    ("B", LARGE, {"B": 1.0, "byte": 1.0, "bytes": 1.0, "b": 1 / 8, "bit": 1 / 8, "bits": 1 / 8}),
    ("FLOP", LARGE, {"FLOP": 1.0, "FLOPs": 1.0}),
    ("FLOP/s", LARGE, {"FLOPS": 1.0}),
    ("s", SMALL, {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0}),
):
    UNITS |= {prefix + name: (_kind, factor * size)
              for prefix, factor in _prefixes.items() for name, size in _names.items()}
# Typed in a hurry, all in small letters: gb are gigabytes.
CARELESS = {unit.lower(): UNITS[unit] for unit in sorted(UNITS, key=lambda unit: unit.endswith("B"))}

_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_FACTOR = r"[+-]?(?:\d(?:[\d,._' ]*\d)?|\.\d+)(?:[eE][+-]?\d+)?(?:\s*\^\s*[+-]?\d+)?"
_PRODUCT = rf"{_FACTOR}(?:\s*[*x]\s*{_FACTOR})*"
_NUMBER = re.compile(rf"(?:about|approx\.?|[~=≈])?\s*(?P<above>{_PRODUCT})(?:\s*/\s*(?P<below>{_PRODUCT}))?"
                     r"(?P<rest>.*)", re.DOTALL)
LONGEST = 100       # letters


class NoNumber(ValueError):
    """The text holds no number that could be an answer. Says why."""


def readings(text: str, unit: str) -> list[float]:
    """What the text can mean in `unit`: one value, or two where a share was typed for a percentage. Raises NoNumber.

    A number without a unit counts as in the unit that is asked for.
    """
    if len(text) > LONGEST:
        raise NoNumber(f"An answer has at most {LONGEST} letters.")
    clean = _clean(text)
    if not (found := _NUMBER.fullmatch(clean)):
        raise NoNumber(f"{text.strip()!r} is no number. Write it like 42, 1,234, 3/11, 1e9, or 12.5 %." if text.strip()
                       else "There is no answer yet: type a number, or show the answer without one.")
    try:
        value = _product(found["above"]) / (_product(found["below"]) if found["below"] else 1.0)
    except (ArithmeticError, ValueError):
        raise NoNumber(f"{text.strip()!r} cannot be worked out: is a digit or a comma too many in it?") from None
    if not math.isfinite(value):
        raise NoNumber(f"{text.strip()!r} is too large for an answer.")
    return _in_unit(value, found["rest"].strip(" ."), unit)


def shown(value: float, unit: str = "") -> str:
    """The number with its unit, as 1,048,576 bytes or 27.27 %."""
    whole = math.isclose(value, round(value), rel_tol=1e-9, abs_tol=1e-9) and abs(value) < 1e15
    words = f"{round(value):,}" if whole else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:.4g}"
    return f"{words} {unit}".strip()


def _clean(text: str) -> str:
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda found: "^" + found[0].translate(_RAISED), text)
    text = re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", text)        # 1½ is not 11/2
    text = unicodedata.normalize("NFKC", text).replace("**", "^").replace("$", "").strip()
    for sign, plain in (("−", "-"), ("–", "-"), ("⁄", "/"), ("×", "*"), ("·", "*"), ("÷", "/")):
        text = text.replace(sign, plain)
    return text


def _product(text: str) -> float:
    result = 1.0
    for factor in re.split(r"\s*[*x]\s*", text):
        base, _, power = factor.partition("^")
        result *= _digits(base) ** int(power or 1)
    return result


def _digits(text: str) -> float:
    """A number with its groups and its decimal mark, which in half the world is a comma."""
    text = re.sub(r"[_']", "", text.strip())
    number, exponent = (re.split("[eE]", text, maxsplit=1) + ["0"])[:2]
    if grouped := re.fullmatch(r"([+-]?(?!0)\d{1,3}(?:[ ,]\d{2,3})*[ ,]\d{3})(\.\d*)?", number):    # 1,234.5; 1,23,456
        number = re.sub("[ ,]", "", grouped[1]) + (grouped[2] or "")
    elif re.fullmatch(r"[+-]?\d{1,3}(\.\d{3}){2,}(,\d+)?|[+-]?\d{1,3}(\.\d{3})+,\d+", number):   # 1.234.567,8
        number = number.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[+-]?\d+,\d+", number):
        number = number.replace(",", ".")
    return float(f"{number}e{exponent}")


def _in_unit(value: float, given: str, asked: str) -> list[float]:
    word, _, rest = given.partition(" ")
    if word.lower() in WORDS:
        value, given = value * WORDS[word.lower()], rest.strip()
    had, wanted = _measure(given), _measure(_clean(asked))
    if not given:
        return [value, 100 * value] if asked == "%" and 0 < abs(value) <= 1 else [value]
    if had and wanted and had[0] == wanted[0]:
        return [value * had[1] / wanted[1]]
    if _same_word(given, asked):
        return [value]
    if word in SHORT and (not rest or _same_word(rest, asked)) and (not wanted or wanted[0] == ""):
        return [value * SHORT[word]]
    if had or (wanted and wanted[0]) or any(letter.isdigit() for letter in given):
        raise NoNumber(f"{given!r} is not what is asked for: the answer is {f'in {asked}' if asked else 'a number'}.")
    return [value]          # a word for what is counted; the question may have another for it


def _measure(unit: str) -> tuple[str, float] | None:
    """What the unit measures and how much of it, a rate by its two parts; None for a word such as steps."""
    if (known := UNITS.get(unit) or CARELESS.get(unit.lower())) or "/" not in unit:
        return known
    above, below = (_measure(part.strip()) for part in unit.split("/", 1))
    return (f"{above[0]}/{below[0]}", above[1] / below[1]) if above and below else None


def _same_word(one: str, other: str) -> bool:
    return one.lower().rstrip("s") == other.lower().rstrip("s")
