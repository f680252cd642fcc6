"""Reads durations such as `30d`, `12h` and `45m` on the command line."""

import re
from datetime import timedelta

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def parse_duration(text: str) -> timedelta | None:
    """Return the duration; None if the text is none."""
    match = re.fullmatch(r"(\d{1,5})([mhd])", text)
    return int(match[1]) * _UNITS[match[2]] if match else None
