"""Images: every format and mode becomes the same arrays, on every path, and damage is named."""

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jobs.spec.data.images import ImageShape
from tests.images import picture, saved
from workers.features.images import decode, read_header
from workers.features.values import BadValue

GREY = ImageShape(height=8, width=12, channels=1, fit="fit")
COLOUR = ImageShape(height=8, width=12, channels=3, fit="fit")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP"])
def test_every_format_is_decoded(kind: str) -> None:
    pixels = decode(picture(kind), COLOUR)
    assert (pixels.shape, pixels.dtype) == ((8, 12, 3), np.dtype(np.uint8))
    assert pixels[:, :5].mean() < 20
    assert 180 < pixels[:, 7:].mean() < 220


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", "1"), ("PNG", "L"), ("PNG", "LA"), ("PNG", "P"), ("PNG", "RGBA"), ("PNG", "I;16"),
     ("JPEG", "CMYK"), ("JPEG", "L"), ("GIF", "P"), ("WEBP", "RGBA")],
)  # fmt: skip
@pytest.mark.parametrize("shape", [GREY, COLOUR])
def test_every_mode_becomes_bytes(kind: str, mode: str, shape: ImageShape) -> None:
    pixels = decode(picture(kind, mode), shape)
    assert pixels.shape == (8, 12, shape.channels)
    bright = 255 if mode == "1" else 200
    assert pixels[:, :4].mean() < 20
    assert abs(pixels[:, 8:].mean() - bright) < 20


def test_sixteen_bits_are_scaled_not_cut() -> None:
    deep = np.array([[0, 257, 32_768, 65_535]], np.uint16)
    body = saved(Image.fromarray(deep), "PNG")
    shape = ImageShape(height=1, width=4, channels=1, fit="fit")
    assert decode(body, shape)[0, :, 0].tolist() == [0, 1, 128, 255]


def test_transparent_pixels_become_white() -> None:
    clear = Image.new("RGBA", (4, 4), (10, 20, 30, 0))
    shape = ImageShape(height=4, width=4, channels=3, fit="fit")
    assert (decode(saved(clear, "PNG"), shape) == 255).all()


def test_a_large_transparent_image_is_white_where_it_is_clear() -> None:
    layered = Image.new("RGBA", (64, 64), (10, 20, 30, 0))
    layered.paste((200, 100, 0, 255), (0, 0, 32, 64))
    pixels = decode(saved(layered, "PNG"), ImageShape(height=8, width=16, channels=3, fit="fit"))
    assert pixels[4, :4].max() == 0
    assert pixels[4, 5].tolist() == [200, 100, 0]
    assert pixels[4, 10].tolist() == [255, 255, 255]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_an_image_is_turned_upright(kind: str, orientation: int) -> None:
    pixels = np.zeros((16, 8), np.uint8)
    pixels[:8] = 220
    upright = Image.fromarray(pixels)
    inverse = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    stored = upright if orientation == 1 else upright.transpose(inverse[orientation])
    body = saved(stored, kind, orientation=orientation)
    assert read_header(body)[1:3] == (8, 16)
    turned = decode(body, ImageShape(height=16, width=8, channels=1, fit="fit"))
    assert turned[:6].mean() > 200
    assert turned[10:].mean() < 20


@pytest.mark.parametrize(
    ("fit", "column", "row"),
    [("stretch", [200] * 8, [200] * 8), ("fit", [0, 0, 200, 200, 200, 200, 0, 0], [200] * 8),
     ("crop", [200] * 8, [200] * 8)],
)  # fmt: skip
def test_another_shape_is_stretched_cropped_or_gets_edges(
    fit: Any, column: list[int], row: list[int]
) -> None:
    body = saved(Image.new("L", (16, 8), 200), "PNG")
    pixels = decode(body, ImageShape(height=8, width=8, channels=1, fit=fit))[..., 0]
    assert pixels[:, 4].tolist() == column
    assert pixels[4].tolist() == row


def test_a_crop_shows_the_middle() -> None:
    pixels = np.zeros((8, 24), np.uint8)
    pixels[:, 8:16] = 100
    body = saved(Image.fromarray(pixels), "PNG")
    pixels_out = decode(body, ImageShape(height=8, width=8, channels=1, fit="crop"))
    assert (pixels_out == 100).all()


def test_of_an_animation_the_first_frame_is_read() -> None:
    first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    body = saved(first, "GIF", save_all=True, append_images=[second])
    pixels = decode(body, ImageShape(height=8, width=8, channels=3, fit="fit"))
    assert pixels[0, 0].tolist() == [255, 0, 0]


def png_of(width: int, height: int) -> bytes:
    """Return a PNG whose header states a size, without pixels."""
    chunks = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0), b"IDAT" + zlib.compress(b"")
    parts = [
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def webp_of(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    chunk = b"VP8X" + struct.pack("<I", 10) + bytes(4) + sides
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


@pytest.mark.parametrize("body", [png_of(30_000, 30_000), webp_of(16_000, 16_000), png_of(70_000, 1)])
def test_the_pixels_of_a_huge_image_are_refused_before_they_are_decoded(body: bytes) -> None:
    for read in (read_header, lambda content: decode(content, GREY)):
        with pytest.raises(BadValue, match=r"pixels"):
            read(body)


def test_a_file_that_is_no_image_is_refused() -> None:
    for body in (b"", b"GIF89a", b"hello", b"%!PS-Adobe", picture("TIFF"), b"II*\0" + bytes(64)):
        with pytest.raises(BadValue, match="no image in one"):
            decode(body, GREY)


def test_a_truncated_image_is_damaged() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    body = saved(Image.fromarray(noise), "JPEG")
    with pytest.raises(BadValue, match="a damaged JPEG image"):
        decode(body[: len(body) // 2], GREY)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP"])
def test_damaged_bytes_give_an_image_or_are_refused(kind: str) -> None:
    rng = np.random.default_rng(5)
    body = picture(kind, size=(24, 16))
    for _ in range(150):
        mutant = bytearray(body)
        for place in rng.integers(0, len(mutant), rng.integers(1, 6)):
            mutant[place] = rng.integers(0, 256)
        try:
            assert decode(bytes(mutant), COLOUR).shape == (8, 12, 3)
        except BadValue:
            continue
