"""Study days by hand: where the clock jumps, zones of half hours, a day that never was."""

import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disttutor.cards.progress.days import StudyDays

LOS_ANGELES = ZoneInfo("America/Los_Angeles")
ZONES = ["America/Los_Angeles", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe", "America/Goose_Bay",
         "America/Sao_Paulo", "Antarctica/Troll", "Europe/Berlin", "UTC"]


@pytest.mark.parametrize(("zone", "hour", "day", "start"), [
    # The tenth of March 2024 has 23 hours in Los Angeles: 01:59 PST is followed by 03:00 PDT at 10:00 UTC.
    ("America/Los_Angeles", 0, date(2024, 3, 10), datetime(2024, 3, 10, 8)),
    ("America/Los_Angeles", 2, date(2024, 3, 10), datetime(2024, 3, 10, 10)),
    ("America/Los_Angeles", 4, date(2024, 3, 10), datetime(2024, 3, 10, 11)),
    ("America/Los_Angeles", 0, date(2024, 3, 11), datetime(2024, 3, 11, 7)),
    # The third of November 2024 has 25: one o'clock comes twice, at 8:00 and 9:00 UTC; the first counts.
    ("America/Los_Angeles", 1, date(2024, 11, 3), datetime(2024, 11, 3, 8)),
    ("America/Los_Angeles", 4, date(2024, 11, 3), datetime(2024, 11, 3, 12)),
    ("Asia/Kathmandu", 4, date(2024, 6, 1), datetime(2024, 5, 31, 22, 15)),
    # Samoa went from the end of the 29th to the 31st of December 2011, at 10:00 UTC on the 30th.
    ("Pacific/Apia", 0, date(2011, 12, 30), datetime(2011, 12, 30, 10)),
    ("Pacific/Apia", 4, date(2011, 12, 30), datetime(2011, 12, 30, 10)),
    ("Pacific/Apia", 4, date(2011, 12, 31), datetime(2011, 12, 30, 14)),
    # Troll goes two hours forward at 01:00 UTC: from 01:00 to 03:00, so that two o'clock lies inside the gap.
    ("Antarctica/Troll", 2, date(2024, 3, 31), datetime(2024, 3, 31, 1)),
    # São Paulo had no midnight on the fourth of November 2018: 03:00 UTC was one o'clock.
    ("America/Sao_Paulo", 0, date(2018, 11, 4), datetime(2018, 11, 4, 3)),
])
def test_a_day_begins_when_the_clock_first_shows_the_hour_or_later(zone, hour, day, start):
    begins = StudyDays(ZoneInfo(zone), hour).start_of(day)
    assert begins.astimezone(UTC) == start.replace(tzinfo=UTC)
    assert begins.utcoffset() == begins.astimezone(ZoneInfo(zone)).utcoffset()


@pytest.mark.parametrize(("hour", "moment", "day"), [
    (4, datetime(2024, 3, 9, 20), date(2024, 3, 9)),           # 04:00 UTC on the tenth, still the ninth here
    (0, datetime(2024, 3, 9, 20), date(2024, 3, 9)),
    (4, datetime(2024, 3, 10, 1, 30), date(2024, 3, 9)),       # before the roll-over: the evening before
    (0, datetime(2024, 3, 10, 1, 30), date(2024, 3, 10)),
    (2, datetime(2024, 3, 10, 1, 59), date(2024, 3, 9)),
    (2, datetime(2024, 3, 10, 3, 0), date(2024, 3, 10)),
    (4, datetime(2024, 3, 10, 4, 0), date(2024, 3, 10)),
    (1, datetime(2024, 11, 3, 1, 30), date(2024, 11, 3)),
    (1, datetime(2024, 11, 3, 1, 30, fold=1), date(2024, 11, 3)),
    (1, datetime(2024, 11, 3, 0, 59), date(2024, 11, 2)),
])
def test_the_study_day_of_a_moment(hour, moment, day):
    assert StudyDays(LOS_ANGELES, hour).day_of(moment.replace(tzinfo=LOS_ANGELES)) == day


def test_a_clock_set_back_over_midnight_does_not_bring_the_day_before_back():
    # Goose Bay, 29 October 2006: at 00:01, 03:01 UTC, the clock went back to 23:01 of the day before.
    goose_bay = ZoneInfo("America/Goose_Bay")
    again = datetime(2006, 10, 28, 23, 30, fold=1, tzinfo=goose_bay)
    assert again.astimezone(UTC) == datetime(2006, 10, 29, 3, 30, tzinfo=UTC)
    assert StudyDays(goose_bay, 0).start_of(date(2006, 10, 29)).astimezone(UTC) == datetime(2006, 10, 29, 3, tzinfo=UTC)
    assert StudyDays(goose_bay, 0).day_of(again) == date(2006, 10, 29)
    assert StudyDays(goose_bay, 0).day_of(again.replace(fold=0)) == date(2006, 10, 28)


def test_the_skipped_day_of_samoa_has_the_hours_before_the_roll_over():
    apia = ZoneInfo("Pacific/Apia")
    night = datetime(2011, 12, 31, 1, tzinfo=apia)
    assert StudyDays(apia, 4).day_of(night) == date(2011, 12, 30)
    assert StudyDays(apia, 0).day_of(night) == date(2011, 12, 31)
    assert StudyDays(apia, 0).day_of(night.astimezone(UTC) - timedelta(hours=2)) == date(2011, 12, 29)


@given(st.sampled_from(ZONES), st.integers(0, 23),
       st.datetimes(datetime(2005, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)))
def test_each_moment_lies_between_the_start_of_its_day_and_that_of_the_next(zone, hour, moment):
    days = StudyDays(ZoneInfo(zone), hour)
    day = days.day_of(moment)
    assert days.start_of(day).astimezone(UTC) <= moment < days.start_of(day + timedelta(days=1)).astimezone(UTC)


def test_the_computers_own_zone_is_the_one_of_its_clock():
    code = ("from datetime import *; from disttutor.cards.progress.days import StudyDays; d = StudyDays(); "
            "print(d.day_of(datetime(2024, 3, 10, 11, 59, tzinfo=UTC) - timedelta(hours=1)), "
            "d.start_of(date(2024, 3, 10)).astimezone(UTC), "
            "StudyDays(None, 2).start_of(date(2024, 3, 10)).astimezone(UTC))")
    said = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TZ": "America/Los_Angeles"},
                          capture_output=True, text=True, check=True).stdout
    assert said == "2024-03-09 2024-03-10 11:00:00+00:00 2024-03-10 10:00:00+00:00\n"


@pytest.mark.parametrize("hour", [-1, 24, 2.5, "4", True])
def test_another_roll_over_hour_is_refused(hour):
    with pytest.raises(ValueError, match="whole hour from 0 to 23"):
        StudyDays(None, hour)


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="has no zone"):
        StudyDays().day_of(datetime(2024, 3, 9, 20))
