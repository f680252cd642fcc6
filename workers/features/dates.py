"""A date's numbers: its distance from another one, and its place in the year, the week and the day."""

import math

import numpy as np

from jobs.spec.data.features import DATE_POSITIONS
from workers.features.date_texts import DATE
from workers.features.values import Array

SECONDS_PER_DAY = 86_400
DAYS_PER_YEAR, DAYS_PER_WEEK, MINUTES_PER_DAY = 366, 7, 1_440


def _circle(count: int) -> Array:
    """Return sine and cosine for `count` equal steps on a circle, (count, 2)."""
    # From a table, so that equal dates give equal bits whatever the number of rows.
    turns = [2 * math.pi * step / count for step in range(count)]
    return np.asarray([[math.sin(turn), math.cos(turn)] for turn in turns])


_YEAR, _WEEK, _DAY = _circle(DAYS_PER_YEAR), _circle(DAYS_PER_WEEK), _circle(MINUTES_PER_DAY)


def positions_of_dates(dates: Array, origin: np.datetime64) -> Array:
    """Return the numbers for dates, (rows, 7) float64.

    They are the days since `origin`, then sine and cosine for the day in the year, the day in the week, and
    the minute in the day.

    Args:
        dates: without missing ones, (rows,) datetime64.
        origin: the date with distance 0.
    """
    moments = dates.astype(DATE)
    days = moments.astype("datetime64[D]")
    out = np.empty((len(moments), DATE_POSITIONS))
    out[:, 0] = (moments - origin.astype(DATE)) / np.timedelta64(SECONDS_PER_DAY, "s")
    out[:, 1:3] = _YEAR[(days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64)]
    # The first day of 1970 was a Thursday; Monday is 0.
    out[:, 3:5] = _WEEK[(days.astype(np.int64) + 3) % DAYS_PER_WEEK]
    minutes = (moments - days.astype(DATE)).astype("timedelta64[m]")
    out[:, 5:7] = _DAY[minutes.astype(np.int64)]
    return out
