"""Defines an opened source, and the time limits for all sources."""

from collections.abc import Iterator
from dataclasses import dataclass

CONNECT_SECONDS = 10.0
STALL_SECONDS = 30.0
"""The longest wait for a source's next bytes."""
BLOCK = 1 << 20


def plain(value: object, length: int) -> str:
    """Return a source's value as a text that can be stored: short, and without control characters."""
    text = "" if value is None else str(value)
    return "".join(character for character in text if character.isprintable())[:length]


@dataclass(frozen=True)
class Source:
    """Data that are being read.

    Attributes:
        size: bytes that the source announced; None if it announced none.
        blocks: the data; fewer or more bytes than `size` are for the reader to find.
        etag: the entity tag of the data; empty if it has none.
        modified: when the data were last changed, as the source gives it; empty if it does not.
    """

    size: int | None
    blocks: Iterator[bytes]
    etag: str = ""
    modified: str = ""
