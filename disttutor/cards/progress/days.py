"""Study days: when today's cards become yesterday's.

A study day begins at the roll-over hour of the learner's own clock, by default at 4, so that a late evening belongs to
the day it began in. In spring and autumn a day has 23 or 25 hours, and the roll-over hour may be skipped or come twice;
a study day then begins at the first moment at which the clock shows that hour or later.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class StudyDays:
    """Days of a zone. zone None is the computer's own zone, asked anew each time. rollover_hour is from 0 to 23.

    Raises ValueError for another roll-over hour.
    """

    zone: tzinfo | None = None
    rollover_hour: int = 4

    def __post_init__(self) -> None:
        if type(self.rollover_hour) is not int or not 0 <= self.rollover_hour <= 23:
            raise ValueError(f"the roll-over hour is {self.rollover_hour!r}; it must be a whole hour from 0 to 23")

    def day_of(self, moment: datetime) -> date:
        """The study day of a moment. Raises ValueError for a moment without a zone."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no zone, so its day is not known; give a time such as datetime.now(UTC)")
        day = moment.astimezone(self.zone).date() + ONE_DAY
        while self._start(day) > moment.astimezone(UTC):
            day -= ONE_DAY
        return day

    def start_of(self, day: date) -> datetime:
        """The first moment of a study day, in local time.

        Compare it with others after `.astimezone(UTC)`: Python compares two times of one zone by what the clock shows.
        """
        return self._start(day).astimezone(self.zone)

    def _start(self, day: date) -> datetime:
        wall = datetime.combine(day, time(self.rollover_hour))
        start = self._moment(wall)
        return start if self._shown(start) == wall else self._after_gap(wall)

    def _moment(self, wall: datetime) -> datetime:
        """The moment, in UTC, at which the clock shows this. In a gap: counted on from before it, with fold 1 back."""
        return datetime.fromtimestamp(wall.replace(tzinfo=self.zone).timestamp(), UTC)

    def _shown(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def _after_gap(self, wall: datetime) -> datetime:
        """The moment, to the second, at which the clock jumps past `wall`, which it never shows."""
        low, high = self._moment(wall.replace(fold=1)), self._moment(wall)
        while (steps := int((high - low).total_seconds())) > 1:
            middle = low + timedelta(seconds=steps // 2)
            low, high = (low, middle) if self._shown(middle) >= wall else (middle, high)
        return high
