"""Request bodies that arrive compressed (`Content-Encoding: gzip` or `deflate`), and their unpacking."""

import zlib
from typing import NamedTuple

from workers.model_process.errors import BadRequest, BodyTooLarge, UnsupportedEncoding

_GZIP, _ZLIB, _RAW = 31, zlib.MAX_WBITS, -zlib.MAX_WBITS
# Each part is copied with all that follow it.
_MAX_PARTS = 16
_CODINGS = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}


class PackedBody(NamedTuple):
    """A compressed body. It is unpacked to `limit` bytes at most."""

    data: bytes | bytearray | memoryview
    coding: str
    limit: int

    def unpack(self, limit: int | None = None) -> bytes:
        """Return the body.

        Args:
            limit: a lower limit than its own.

        Raises:
            BadRequest: it is damaged.
            BodyTooLarge: it has more than `limit` bytes. They are not kept in memory.
        """
        limit = self.limit if limit is None else limit
        try:
            return _unpack(self.data, self.coding, limit)
        except zlib.error as error:
            raise BadRequest(f"The body is not valid {self.coding} data: {error}") from None


def coding_of(header: bytes) -> str | None:
    """Return the coding that a Content-Encoding header names; None if the body is plain.

    Raises:
        UnsupportedEncoding: it names another coding, or several.
    """
    name = header.decode("latin-1").strip().lower()
    if name in ("", "identity"):
        return None
    if name not in _CODINGS:
        raise UnsupportedEncoding(f"Content-Encoding is {name!r}; send gzip, deflate or a plain body")
    return _CODINGS[name]


def _unpack(data: bytes | bytearray | memoryview, coding: str, limit: int) -> bytes:
    rest, unpacked, parts = bytes(data), bytearray(), 0
    # A gzip file may consist of several parts.
    while rest:
        if (parts := parts + 1) > _MAX_PARTS:
            raise BadRequest(f"The body has more than {_MAX_PARTS} gzip parts")
        unpacker = zlib.decompressobj(_GZIP if coding == "gzip" else _window(rest))
        unpacked += unpacker.decompress(rest, limit + 1 - len(unpacked))
        if len(unpacked) > limit:
            raise BodyTooLarge(f"The body unpacks to more than the limit of {limit} bytes")
        if not unpacker.eof:
            raise BadRequest(f"The body ends inside its {coding} data")
        rest = unpacker.unused_data
        if rest and coding == "deflate":
            raise BadRequest(f"{len(rest)} bytes follow the {coding} data of the body")
    return bytes(unpacked)


def _window(data: bytes) -> int:
    """Return the parameter for zlib: some clients send deflate data without the zlib header."""
    has_header = len(data) > 1 and data[0] & 0x0F == zlib.DEFLATED and (data[0] << 8 | data[1]) % 31 == 0
    return _ZLIB if has_header else _RAW
