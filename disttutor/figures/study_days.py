"""On which of the last days one studied: a small calendar, a row for each week."""

from collections.abc import Collection
from datetime import date, timedelta

from disttutor.figures.style import COOL, INK, MUTED
from disttutor.figures.svg import Svg, drawing, number, rect, text

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
CELL, GAP, NAMES, EDGE = 26.0, 6.0, 66.0, 12.0
HEAD = 24.0


def study_days(studied: Collection[date], today: date, *, weeks: int = 4) -> Svg:
    """The last `weeks` weeks from Monday to Sunday, this one at the bottom. A day on which one studied is filled and
    has a tick, today has a thick border, and days to come are left out.

    Raises ValueError for fewer than one week.
    """
    if weeks < 1:
        raise ValueError(f"{weeks} weeks cannot be drawn; one or more work")
    monday = today - timedelta(days=today.weekday() + 7 * (weeks - 1))
    parts = [text(EDGE + NAMES + k * (CELL + GAP) + CELL / 2, EDGE + 12, name, size=10, fill=MUTED, anchor="middle")
             for k, name in enumerate(WEEKDAYS)]
    for week in range(weeks):
        first = monday + timedelta(weeks=week)
        y = EDGE + HEAD + week * (CELL + GAP)
        parts.append(text(EDGE, y + CELL / 2 + 4, f"{first.day} {first:%b}", size=10, fill=MUTED))
        parts += [_day(EDGE + NAMES + k * (CELL + GAP), y, day in studied, day == today)
                  for k in range(7) if (day := first + timedelta(days=k)) <= today]
    seen = sorted(day for day in studied if monday <= day <= today)
    said = ", ".join(f"{day.day} {day:%B}" for day in seen) or "none"
    width = 2 * EDGE + NAMES + 7 * CELL + 6 * GAP
    return drawing(parts, int(width), 2 * EDGE + HEAD + weeks * (CELL + GAP) - GAP,
                   alt=f"Days on which you studied, in {weeks} week{'' if weeks == 1 else 's'} to today: {said}.",
                   plain=f"You studied on {len(seen)} of the {(today - monday).days + 1} days"
                         f" since {monday.day} {monday:%B}.")


def _day(x: float, y: float, studied: bool, today: bool) -> str:
    square = rect(x, y, CELL, CELL, fill=COOL if studied else "#ffffff", stroke=INK if today else "#b9bec6", rx=5)
    if today:
        square = square.replace("/>", ' stroke-width="2.4"/>')
    tick = f"M{number(x + 7)} {number(y + 13.5)}l4.5 4.5 8 -9.5"
    return square + (f'<path d="{tick}" fill="none" stroke="#ffffff" stroke-width="2.4"/>' if studied else "")
