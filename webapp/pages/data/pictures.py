"""Encodes sample images as PNG data URLs, and computes histogram bars for SVG."""

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_PIXELS = 256
"""The largest width and height of an image that is drawn, in pixels."""


class Bar(NamedTuple):
    """A bar in an SVG of width 100 and height 30."""

    x: float
    y: float
    width: float
    height: float


def histogram_bars(counts: Sequence[int]) -> list[Bar]:
    """Return histogram bars. A non-empty bin has a visible minimum height."""
    most = max(counts, default=0)
    if not most:
        return []
    width = 100 / len(counts)
    heights = [max(30 * count / most, 0.6) if count else 0.0 for count in counts]
    return [Bar(i * width, 30 - height, width * 0.9, height) for i, height in enumerate(heights)]


def png_uri(pixels: Any, low: float, high: float) -> str | None:
    """Return an image, as nested lists (rows, columns[, channels]), as a `data:` URL.

    Args:
        pixels: numbers; one channel is gray, three channels are red, green and blue.
        low: the value for black.
        high: the value for white.

    Returns:
        None if the lists are not an image that can be drawn.
    """
    rows = _as_rows(pixels)
    if rows is None:
        return None
    # A constant image has no span to divide by.
    span = (high - low) or 1.0
    channels = len(rows[0][0])
    # Each line of a PNG begins with the number of its filter; 0 is none.
    lines = b"".join(
        b"\0" + bytes(_pixel_level(value, low, span) for pixel in row for value in pixel) for row in rows
    )
    # Width, height, bits of a sample, colour type (2: RGB, 0: gray), compression, filter, interlace.
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = (
        _png_chunk(b"IHDR", header) + _png_chunk(b"IDAT", zlib.compress(lines, 6)) + _png_chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def _as_rows(pixels: Any) -> list[list[list[float]]] | None:
    """Return (rows, columns, channels) with one or three channels, None for anything else."""
    if not isinstance(pixels, list) or not pixels or len(pixels) > MAX_PIXELS:
        return None
    if not all(isinstance(row, list) and row and len(row) == len(pixels[0]) for row in pixels):
        return None
    if len(pixels[0]) > MAX_PIXELS:
        return None
    rows = [[pixel if isinstance(pixel, list) else [pixel] for pixel in row] for row in pixels]
    depths = {len(pixel) for row in rows for pixel in row}
    return rows if depths in ({1}, {3}) else None


def _pixel_level(value: float | None, low: float, span: float) -> int:
    """Return a pixel's value between 0 and 255; a missing value is black."""
    return min(max(round(255 * ((value if value is not None else low) - low) / span), 0), 255)


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
