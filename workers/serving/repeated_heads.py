"""Recognizes requests whose head repeats an earlier one, apart from the length of the body."""

import re
from typing import NamedTuple

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,6})(?=\r\n)", re.IGNORECASE)
_MAX_DIGITS = 6
_END = b"\r\n\r\n"
# A connection keeps its last head.
_MAX_HEAD_BYTES = 4 * 2**10


class RepeatedHead(NamedTuple):
    """The head of a request, up to the value of its Content-Length and after it.

    Another head with the same bytes has the same meaning, so it need not be parsed.
    """

    before: bytes
    after: bytes

    def body_of(self, data: bytes) -> bytes | None:
        """Return the body if `data` is exactly one request with this head; else None."""
        if not data.startswith(self.before):
            return None
        start = len(self.before)
        end = data.find(b"\r", start, start + _MAX_DIGITS + 1)
        length = data[start:end]
        if end < 0 or not length.isdigit() or not data.startswith(self.after, end):
            return None
        body = data[end + len(self.after) :]
        return body if len(body) == int(length) else None


def head_of(data: bytes) -> RepeatedHead | None:
    """Return the head of a request that was parsed.

    Args:
        data: the bytes that were parsed.

    Returns:
        The head, or None unless `data` is exactly one request, with a Content-Length.
    """
    end = data.find(_END, 0, _MAX_HEAD_BYTES)
    if end < 0:
        return None
    lengths = list(_LENGTH.finditer(data, 0, end + 2))
    if len(lengths) != 1:
        return None
    start, stop = lengths[0].span(1)
    head = RepeatedHead(data[:start], data[stop : end + len(_END)])
    return head if head.body_of(data) is not None else None
