"""Reads an image archive: equally large arrays, their labels, and thumbnails."""

import hashlib
import io
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.images import (
    FILE,
    IMAGE,
    PROPOSED_SIDE,
    ImageOptions,
    ImageShape,
    ImageStatistics,
    Sides,
    Thumbnails,
)
from workers.engine.arrays import Array
from workers.engine.data.encode import MAX_CLASSES_OF_NUMBERS
from workers.engine.data.expansion import check_expanded
from workers.engine.data.image_files.image_archive import ImageArchive
from workers.engine.data.image_files.image_labels import (
    LabelledImages,
    choose_label,
    is_table,
    label_by_folder,
    label_by_table,
)
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.table import Table
from workers.engine.data.texts import text_array
from workers.engine.errors import BadData
from workers.features.images import Header, decode, read_header
from workers.features.values import BadValue
from workers.system.archives import ArchiveFile

TILE = 64
"""Height and width of a thumbnail."""
TILES = 8
"""Thumbnails of one label."""
SHOWN_LABELS = 50
SHOWN_FILES = 5
REPORTED_FILES = 50
"""Progress is reported after so many files."""
QUALITY = 80


@dataclass
class BadImages(BadRows):
    """Images that cannot be read or have no label. Their number, reason and path are in `rows`."""

    NAMES: ClassVar[tuple[str, ...]] = ("number", "reason", "image")

    def add(self, path: str, reason: str) -> None:
        """Record an image that is left out."""
        self.rows.append((len(self.rows) + 1, reason, path))

    def check(self, rows: int, name: str) -> None:
        """Check the share of images that were left out; see `BadRows.check`."""
        count = len(self.rows)
        if count > self.allowed * (rows + count):
            _, reason, path = self.rows[0]
            raise BadData(
                f"{count:,} of {rows + count:,} images of {name} cannot be used; at most a share of "
                f"{self.allowed:g} is left out. The first is {path!r}: {reason}"
            )


@dataclass(frozen=True)
class ImageTable(Table):
    """A table with the column `image`, (rows, height, width, channels) uint8.

    Attributes:
        statistics: describe the originals.
        sheet: the thumbnails as one JPEG file.
    """

    statistics: ImageStatistics = field(kw_only=True)
    sheet: bytes = field(kw_only=True)


@dataclass
class _FirstReading:
    """An archive's files, after the first reading."""

    headers: dict[str, Header] = field(default_factory=dict)
    table: ArchiveFile | None = None


def read_images(
    path: Path,
    folder: Path,
    options: ImageOptions,
    bad: BadImages,
    limits: FileLimits,
    *,
    target: str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> ImageTable:
    """Read an archive twice: all image headers, then, with the size chosen, the pixels.

    Args:
        path: the archive.
        folder: the task's folder, for a temporary file.
        options: the array size.
        bad: which images may be left out. It gets those that are.
        limits: the limits for the size in memory.
        target: the column whose values group the thumbnails; see `choose_label`.
        progress: called with the finished share.

    Raises:
        BadData: the archive or an image is refused, or too many cannot be read.
        DamagedFile: the archive is damaged.
    """
    archive = ImageArchive(path)
    archived = _read_headers(archive, bad, progress)
    labelled = _label(archived, folder, limits)
    for refused_path, reason in labelled.refused:
        bad.add(refused_path, reason)
    bad.check(len(labelled.paths), path.name)
    if not labelled.paths:
        raise BadData(f"{path.name} has no images")
    headers = [archived.headers[path_of_image] for path_of_image in labelled.paths]
    shape = choose_shape(headers, options, limits)
    reader = _PixelReader(labelled, shape, _groups(labelled.columns, target))
    for number, file in enumerate(archive.files()):
        reader.read(file, bad)
        if number % REPORTED_FILES == 0:
            progress(0.5 + 0.5 * min(number / len(headers), 1))
    is_readable = reader.kept
    bad.check(int(is_readable.sum()), path.name)
    columns = {IMAGE: reader.pixels, FILE: text_array(labelled.paths), **labelled.columns}
    if not is_readable.all():
        # Otherwise without a copy, which takes as much memory as all images.
        columns = {name: column[is_readable] for name, column in columns.items()}
    return ImageTable(
        columns,
        bad_rows=len(bad.rows),
        findings=_left_out(archive.about),
        statistics=ImageStatistics(
            shape=shape,
            heights=_sides([header.height for header in headers]),
            widths=_sides([header.width for header in headers]),
            formats=dict(Counter(header.format for header in headers).most_common()),
            hidden=archive.hidden,
            thumbnails=reader.layout(),
        ),
        sheet=reader.sheet(),
    )


def _left_out(about: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence on the files that describe the images."""
    if not about:
        return ()
    more = f" and {len(about) - SHOWN_FILES:,} more" if len(about) > SHOWN_FILES else ""
    return (f"Left out of the archive, as they describe it: {', '.join(about[:SHOWN_FILES])}{more}.",)


def _read_headers(archive: ImageArchive, bad: BadImages, progress: Callable[[float], None]) -> _FirstReading:
    archived = _FirstReading()
    for file in archive.files():
        if is_table(file.path):
            if archived.table is not None:
                both = f"{archived.table.path} and {file.path}"
                raise BadData(f"the archive has two tables of labels: {both}; keep the one with the labels")
            archived.table = file
            continue
        try:
            archived.headers[file.path] = read_header(file.body)
        except BadValue as error:
            bad.add(file.path, str(error))
            if not bad.allowed:
                bad.check(len(archived.headers), archive.path.name)
        if len(archived.headers) % REPORTED_FILES == 0:
            # The number of files is unknown: a tar archive has no directory.
            progress(0.5 * (1 - 1 / (1 + len(archived.headers) / 1000)))
    return archived


def _label(archived: _FirstReading, folder: Path, limits: FileLimits) -> LabelledImages:
    paths = list(archived.headers)
    if archived.table is None:
        return label_by_folder(paths)
    return label_by_table(paths, archived.table, folder, limits)


def choose_shape(headers: Sequence[Header], options: ImageOptions, limits: FileLimits) -> ImageShape:
    """Return the array size: the chosen one, or the originals' median with a bound.

    One channel is enough if all originals are grey.

    Raises:
        BadData: all images together would be too large in the chosen size.
    """
    channels = 1 if all(header.is_grey for header in headers) else 3
    height = options.height or _median([header.height for header in headers])
    width = options.width or _median([header.width for header in headers])
    if options.height is None:
        # The largest square that fits into the memory for all images.
        largest = math.isqrt(max(limits.expanded_bytes // (len(headers) * channels), 1))
        scale = min(1.0, min(PROPOSED_SIDE, largest) / max(height, width))
        height, width = max(1, round(height * scale)), max(1, round(width * scale))
    size = len(headers) * height * width * channels
    check_expanded(f"{len(headers):,} images of {height} × {width} pixels", size, limits)
    return ImageShape(height=height, width=width, channels=channels, fit=options.fit)


def _median(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2]


def _sides(values: Sequence[int]) -> Sides:
    return Sides(min=min(values), median=_median(values), max=max(values))


def _groups(columns: Mapping[str, Array], target: str | None) -> list[str]:
    """Return each image's label, under which its thumbnail is shown; "" for all if it is a measure.

    Raises:
        BadData: there is no such column.
    """
    values = columns[choose_label(columns, target)]
    texts = [str(value) for value in values.tolist()]
    if values.dtype.kind == "f" or (values.dtype.kind in "iu" and len({*texts}) > MAX_CLASSES_OF_NUMBERS):
        return [""] * len(texts)
    return texts


class _PixelReader:
    """Decodes an archive's images into one array, and the first ones with each label to thumbnails.

    Attributes:
        pixels: (images, height, width, channels) uint8.
        kept: which images could be decoded, (images,).
    """

    def __init__(self, labelled: LabelledImages, shape: ImageShape, groups: list[str]) -> None:
        self._rows = {path: row for row, path in enumerate(labelled.paths)}
        self._shape = shape
        self.pixels = np.zeros((len(self._rows), shape.height, shape.width, shape.channels), np.uint8)
        self.kept = np.zeros(len(self._rows), np.bool_)
        self._tile = ImageShape(height=TILE, width=TILE, channels=shape.channels, fit="fit")
        self._wanted = _first_of_each(groups)
        self._tiles: dict[str, list[Array]] = {}

    def read(self, file: ArchiveFile, bad: BadImages) -> None:
        """Decode one archive file, if it is an image with a label."""
        row = self._rows.get(file.path)
        if row is None:
            return
        try:
            self.pixels[row] = decode(file.body, self._shape)
        except BadValue as error:
            bad.add(file.path, str(error))
            if not bad.allowed:
                bad.check(int(self.kept.sum()), "the archive")
            return
        self.kept[row] = True
        if (label := self._wanted.get(row)) is not None:
            self._tiles.setdefault(label, []).append(decode(file.body, self._tile))

    def layout(self) -> Thumbnails:
        """Return the thumbnails' labels."""
        tiles = sorted(self._tiles.items())
        return Thumbnails(
            side=TILE,
            tiles=TILES,
            labels=tuple(label for label, _ in tiles),
            counts=tuple(len(images) for _, images in tiles),
        )

    def sheet(self) -> bytes:
        """Return the thumbnails as one JPEG file, with a row for each label."""
        rows = [images for _, images in sorted(self._tiles.items())]
        channels = self._shape.channels
        canvas = np.full((len(rows) * TILE, TILES * TILE, channels), 255, np.uint8)
        for i, images in enumerate(rows):
            for j, image in enumerate(images):
                canvas[i * TILE : (i + 1) * TILE, j * TILE : (j + 1) * TILE] = image
        file = io.BytesIO()
        Image.fromarray(canvas[..., 0] if channels == 1 else canvas).save(file, "JPEG", quality=QUALITY)
        return file.getvalue()


def _first_of_each(groups: Sequence[str]) -> dict[int, str]:
    """Return the thumbnails' rows with their labels: each label's first rows, for the first labels."""
    labels = {*sorted({*groups})[:SHOWN_LABELS]}
    counts: Counter[str] = Counter()
    label_of_row = {}
    for row, label in enumerate(groups):
        if label in labels and counts[label] < TILES:
            counts[label] += 1
            label_of_row[row] = label
    return label_of_row


def count_equal_images(pixels: Array, y: Array) -> int:
    """Return how many images equal an earlier one with the same target."""
    keys = {
        hashlib.blake2b(image.tobytes() + value.tobytes(), digest_size=16).digest()
        for image, value in zip(pixels, y, strict=True)
    }
    return len(pixels) - len(keys)
