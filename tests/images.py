"""Small generated images and archives."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ORIENTATION = 0x0112


def picture(kind: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (12, 8), **options: Any) -> bytes:
    """Return an image file whose left half is dark and whose right half is bright."""
    width, height = size
    grey = np.zeros((height, width), np.uint8)
    grey[:, width // 2 :] = 200
    image = Image.fromarray(grey)
    if mode == "I;16":
        image = Image.fromarray(grey.astype(np.uint16) * 257)
    elif mode == "1":
        image = image.point(lambda value: 255 * (value > 100)).convert("1")
    elif mode != "L":
        image = image.convert("RGB").convert(mode) if mode in ("P", "CMYK") else image.convert(mode)
    return saved(image, kind, **options)


def saved(image: Image.Image, kind: str, *, orientation: int = 0, **options: Any) -> bytes:
    """Return an image as a file."""
    if orientation:
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        options["exif"] = exif
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def coloured(rng: np.random.Generator, colour: int, size: int = 12) -> bytes:
    """Return a noisy PNG in which one of three colours is bright."""
    pixels = rng.integers(0, 90, (size, size, 3), np.uint8)
    pixels[..., colour] += 150
    return saved(Image.fromarray(pixels), "PNG")


def folders(count: int = 8, seed: int = 0) -> dict[str, bytes]:
    """Return files in three folders, one per class."""
    rng = np.random.default_rng(seed)
    return {
        f"{name}/{name}_{i}.png": coloured(rng, colour)
        for colour, name in enumerate(("red", "green", "blue"))
        for i in range(count)
    }


def zipped(path: Path, files: Mapping[str, bytes], **options: Any) -> Path:
    """Write a zip archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return path


def tarred(path: Path, files: Mapping[str, bytes], mode: Any = "w") -> Path:
    """Write a tar archive; `w:gz` compresses it."""
    with tarfile.open(path, mode) as archive:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return path
