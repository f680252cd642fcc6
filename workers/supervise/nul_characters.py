"""Replaces NUL characters in the events of runners: PostgreSQL stores none in texts or JSON."""

import re

# An escape after an even number of backslashes: one before it would escape its own backslash.
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


def without_nul(line: bytes) -> bytes:
    """Return a line of JSON with U+FFFD in place of NUL, which texts of uploaded files may contain."""
    # Nearly all lines have none, and are not searched a second time.
    return _NUL.sub(rb"\1\\ufffd", line) if rb"\u0000" in line else line
