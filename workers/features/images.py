"""Decodes images from outside to equally large arrays. Training, gates and serving execute this code.

Pillow decodes them. The size that the header states is checked before any pixel is decoded.
"""

import base64
import binascii
import io
import struct
import warnings
from typing import NamedTuple

import numpy as np
from PIL import Image

from jobs.spec.data.images import (
    FORMATS,
    MAX_IMAGE_BYTES,
    MAX_ORIGINAL_SIDE,
    MAX_PIXELS,
    ImageShape,
)
from workers.features.values import Array, BadValue
from workers.system.library_errors import explaining_damage

ORIENTATION = 0x0112
"""The EXIF tag with the position of the first pixel."""
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What turns an image upright, by its EXIF orientation."""
SWAPPING = frozenset({5, 6, 7, 8})
"""Orientations of images that lie on their side."""
GREY = frozenset({"1", "L", "LA", "I;16", "I;16L", "I;16B", "I"})
"""Pillow's modes of images without colours."""
DEEP = frozenset({"I;16", "I;16L", "I;16B", "I"})
"""Modes with 16 bits for a pixel."""
DEEPEST = 65_535
ROWS_AT_ONCE = 256
READ_AHEAD = 2
"""A JPEG is decoded at a fraction of its size that is at least this many times the final size."""
NO_IMAGE = "no image in one of the formats JPEG, PNG, BMP, GIF and WebP"
_RIFF, _WEBP = b"RIFF", b"WEBP"
_NO_SPACE = str.maketrans("", "", " \t\r\n")


class Header(NamedTuple):
    """The properties that an image's header states.

    Attributes:
        format: Pillow's name for the format.
        width, height: the size when the image is upright, in pixels.
        is_grey: whether its pixels are grey.
    """

    format: str
    width: int
    height: int
    is_grey: bool


def read_header(body: bytes) -> Header:
    """Return the properties in an image's header. No pixel is decoded.

    Raises:
        BadValue: it is no image, its header is damaged, or it is too large.
    """
    with _opened(body) as image:
        width, height = image.size
        if _orientation(image) in SWAPPING:
            width, height = height, width
        # Phones write several JPEG images into one file, of which the first is the photo.
        kind = "JPEG" if image.format == "MPO" else str(image.format)
        return Header(kind, width, height, _is_grey(image))


def decode(body: bytes, shape: ImageShape) -> Array:
    """Return an image as an array, (height, width, channels) uint8.

    Args:
        body: the image file's bytes.
        shape: the array shape.

    Raises:
        BadValue: it is no image, it is damaged or too large.
    """
    with _opened(body) as image, explaining_damage(lambda error: _damaged(image, error)):
        return _pixels(image, shape)


def from_base64(text: str) -> bytes:
    """Return an image's bytes from a request. Programs such as `base64` break it into lines.

    Raises:
        BadValue: they are no base64, or too many.
    """
    text = text.translate(_NO_SPACE)
    if len(text) > 4 * (MAX_IMAGE_BYTES // 3 + 1):
        raise BadValue(_too_many_bytes(len(text) * 3 // 4))
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadValue("a text that is not base64") from error


def _opened(body: bytes) -> Image.Image:
    """Return an image whose header was read and whose size is accepted.

    Raises:
        BadValue: it is no image, its header is damaged, or it is too large.
    """
    if len(body) > MAX_IMAGE_BYTES:
        raise BadValue(_too_many_bytes(len(body)))
    # Pillow allocates the canvas of a WebP image when it opens it.
    if (size := _webp_size(body)) is not None:
        _check_pixels(*size)
    with explaining_damage(_why_not_opened), warnings.catch_warnings():
        # The number of pixels has a limit of its own, below that of Pillow's warning.
        warnings.simplefilter("ignore")
        image: Image.Image = Image.open(io.BytesIO(body), formats=FORMATS)
    _check_pixels(*image.size)
    return image


def _why_not_opened(error: Exception) -> BadValue:
    # Of far too many pixels Pillow itself complains.
    if isinstance(error, Image.DecompressionBombError):
        return BadValue(f"an image of far too many pixels; at most {MAX_PIXELS:,} pixels are decoded")
    return BadValue(NO_IMAGE)


def _webp_size(body: bytes) -> tuple[int, int] | None:
    """Return width and height from a WebP image's header; None for all others and damaged ones."""
    head = body[:32]
    if len(head) < 30 or head[:4] != _RIFF or head[8:12] != _WEBP:
        return None
    match head[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF
    return None


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise BadValue(
            f"an image of {width:,} × {height:,} pixels; at most {MAX_PIXELS:,} pixels are decoded"
        )
    # The weights of a resampled row need memory that grows with its length.
    if max(width, height) > MAX_ORIGINAL_SIDE:
        raise BadValue(
            f"an image of {width:,} × {height:,} pixels; a side has at most {MAX_ORIGINAL_SIDE:,} pixels"
        )
    if width < 1 or height < 1:
        raise BadValue("an image without pixels")


def _too_many_bytes(size: int) -> str:
    return f"an image of {size:,} bytes; at most {MAX_IMAGE_BYTES:,} are read"


def _damaged(image: Image.Image, error: Exception) -> BadValue:
    reason = (str(error).strip().rstrip(".") or type(error).__name__)[:200]
    return BadValue(f"a damaged {image.format} image: {reason}")


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation; 1, which is upright, if there is none or the EXIF data are damaged."""
    try:
        with explaining_damage(lambda _: BadValue("damaged EXIF data")):
            orientation = image.getexif().get(ORIENTATION, 1)
    # They are no part of the pixels, and cameras and editors write many that are invalid.
    except BadValue:
        return 1
    return orientation if isinstance(orientation, int) and orientation in TURNS else 1


def _is_grey(image: Image.Image) -> bool:
    if image.mode != "P":
        return image.mode in GREY
    if image.palette is None:
        return True
    # `Image.getpalette` would decode all pixels.
    order, palette = image.palette.getdata()
    whole = len(palette) // len(order) * len(order)
    # Three bytes are the colours in each order; a fourth is unused or the opacity.
    colours = np.frombuffer(bytes(palette[:whole]), np.uint8).reshape(-1, len(order))[:, :3]
    return bool((colours == colours[:, :1]).all())


def _pixels(image: Image.Image, shape: ImageShape) -> Array:
    turn = _orientation(image)
    side = READ_AHEAD * max(shape.height, shape.width)
    # Only JPEG has this: decoding a photo at an eighth of its size takes a fraction of time and memory.
    image.draft(None, (side, side))
    image.load()
    upright = image if turn not in TURNS else image.transpose(TURNS[turn])
    mode = "L" if shape.channels == 1 else "RGB"
    resized = _resized(_prepared(upright, mode), shape, mode)
    array = np.asarray(resized, np.uint8)
    return np.ascontiguousarray(array.reshape(shape.height, shape.width, shape.channels))


def _prepared(image: Image.Image, mode: str) -> Image.Image:
    """Return an image that can be resized: in `mode`, or in RGBA if pixels are transparent."""
    if image.mode in DEEP:
        image = _in_eight_bits(image)
    if image.has_transparency_data:
        return image if image.mode == "RGBA" else image.convert("RGBA")
    if image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        image = image.convert("RGB")
    return image if image.mode == mode else image.convert(mode)


def _in_eight_bits(image: Image.Image) -> Image.Image:
    """Return an image with 16 bits for a pixel with 8 bits, which Pillow's conversion would cut at 255."""
    deep = np.asarray(image)
    grey = np.empty(deep.shape, np.uint8)
    # In parts, since the numbers between take several times the memory of the image.
    for start in range(0, len(deep), ROWS_AT_ONCE):
        rows = np.clip(deep[start : start + ROWS_AT_ONCE], 0, DEEPEST).astype(np.uint32)
        grey[start : start + ROWS_AT_ONCE] = (rows * 255 + DEEPEST // 2) // DEEPEST
    return Image.fromarray(grey)


def _resized(image: Image.Image, shape: ImageShape, mode: str) -> Image.Image:
    size = shape.width, shape.height
    width, height = image.size
    if image.size == size or shape.fit == "stretch":
        return _scaled(image, size, mode)
    if shape.fit == "crop":
        scale = min(width / shape.width, height / shape.height)
        left, top = (width - shape.width * scale) / 2, (height - shape.height * scale) / 2
        box = (max(left, 0.0), max(top, 0.0), min(width - left, width), min(height - top, height))
        return _scaled(image, size, mode, box)
    scale = min(shape.width / width, shape.height / height)
    inner = (
        min(max(round(width * scale), 1), shape.width),
        min(max(round(height * scale), 1), shape.height),
    )
    canvas = Image.new(mode, size)
    place = (shape.width - inner[0]) // 2, (shape.height - inner[1]) // 2
    canvas.paste(_scaled(image, inner, mode), place)
    return canvas


def _scaled(
    image: Image.Image,
    size: tuple[int, int],
    mode: str,
    box: tuple[float, float, float, float] | None = None,
) -> Image.Image:
    """Return part of an image in another size, with transparent pixels on white."""
    if image.size != size:
        image = image.resize(size, Image.Resampling.BILINEAR, box=box)
    if image.mode == "RGBA":
        # Only now: before, it would take several times the memory of the whole image.
        image = Image.alpha_composite(Image.new("RGBA", size, "white"), image)
    return image if image.mode == mode else image.convert(mode)
