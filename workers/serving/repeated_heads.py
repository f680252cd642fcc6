"""Recognizes requests whose head repeats an earlier one, apart from the body's length."""

import re
from typing import NamedTuple

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,6})(?=\r\n)", re.IGNORECASE)
_MAX_DIGITS = 6
_END = b"\r\n\r\n"
# A connection keeps its last head.
_MAX_HEAD_BYTES = 4 * 2**10


class BodyPlace(NamedTuple):
    """Where a request's body is in its bytes."""

    start: int
    end: int


class RepeatedHead(NamedTuple):
    """A request's head, up to the value of its Content-Length and after it.

    Another head with the same bytes has the same meaning, so it need not be parsed.
    """

    before: bytes
    after: bytes

    def place_of_body(self, data: bytes) -> BodyPlace | None:
        """Return where the body is, which may end after `data`; None if `data` has another head."""
        if not data.startswith(self.before):
            return None
        start = len(self.before)
        end = data.find(b"\r", start, start + _MAX_DIGITS + 1)
        length = data[start:end]
        if end < 0 or not length.isdigit() or not data.startswith(self.after, end):
            return None
        start = end + len(self.after)
        return BodyPlace(start, start + int(length))


def head_of(data: bytes) -> RepeatedHead | None:
    """Return the head for a request whose head was parsed.

    Args:
        data: the parsed bytes, from the request's first one.

    Returns:
        The head, or None if it has no Content-Length, or if more than this request was sent.
    """
    end = data.find(_END, 0, _MAX_HEAD_BYTES)
    if end < 0:
        return None
    lengths = list(_LENGTH.finditer(data, 0, end + 2))
    if len(lengths) != 1:
        return None
    start, stop = lengths[0].span(1)
    head = RepeatedHead(data[:start], data[stop : end + len(_END)])
    place = head.place_of_body(data)
    return head if place is not None and len(data) <= place.end else None
