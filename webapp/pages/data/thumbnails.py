"""The thumbnails on the page for a version with images."""

from typing import NamedTuple

from jobs.models import DatasetVersion
from jobs.public_path import beside_public_path
from jobs.queries.data import datasets as queries
from jobs.spec.data.profile import Profile


class Sheet(NamedTuple):
    """A file with thumbnails, and its size in pixels."""

    address: str
    width: int
    height: int


class ThumbnailRow(NamedTuple):
    """The thumbnails for one label: a part cut from the sheet, in pixels.

    Attributes:
        label: empty if the target is a number.
        rows: how many images have this label, if it is a class.
        sheet: the file.
        top: the part's upper edge.
        width: the part's width.
        height: the part's height.
    """

    label: str
    rows: int | None
    sheet: Sheet
    top: int
    width: int
    height: int


def thumbnail_rows(version: DatasetVersion, profile: Profile | None) -> list[ThumbnailRow]:
    """Return the thumbnails for an image archive, one row for each label."""
    images = profile.images if profile is not None else None
    stored = queries.thumbnails_file(version) if images is not None else None
    if profile is None or images is None or stored is None:
        return []
    layout = images.thumbnails
    address = beside_public_path(f"/api/v1/artifacts/{stored.artifact.digest}")
    rows = dict(zip(profile.class_labels, profile.class_counts, strict=False))
    sheet = Sheet(address, layout.side * layout.tiles, layout.side * len(layout.labels))
    return [
        ThumbnailRow(label, rows.get(label), sheet, i * layout.side, count * layout.side, layout.side)
        for i, (label, count) in enumerate(zip(layout.labels, layout.counts, strict=True))
    ]
