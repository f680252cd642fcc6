"""Marks in a runner's output which trial the following lines belong to.

A runner prints to files, and its events arrive through a pipe. The order between both is not known, so the
output itself contains the marker as a line.
"""

import re

_MARKER = re.compile(rb"\x1etrial (\d{1,9})")


def marker_of(trial: int) -> bytes:
    """Return the marker before a trial's lines. It also ends an unfinished line before it."""
    return b"\n\x1etrial %d\n" % trial


def trial_of(line: bytes) -> int | None:
    """Return the trial that an output line marks, or None for all other lines."""
    match = _MARKER.fullmatch(line)
    return None if match is None else int(match[1])
