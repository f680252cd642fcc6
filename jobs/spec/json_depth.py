"""Measures how deep JSON text is nested, without parsing it.

The parser accepts values that are nested deeper than Python's functions can recurse, so whatever visits such
a value later would fail.
"""

import re
from itertools import accumulate

MAX_DEPTH = 64
"""The most nested objects and lists in an input. A spec has fewer than 10."""
# Possessive, so that a string without an end costs no more than one pass.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OTHER = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def is_too_deep(raw: bytes) -> bool:
    """Return whether JSON text is nested deeper than `MAX_DEPTH`. It need not be valid."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRING.sub(b"", raw).translate(None, delete=_OTHER)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > MAX_DEPTH
