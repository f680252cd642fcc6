"""The fields for image sizes in upload forms."""

from collections.abc import Mapping
from typing import NamedTuple

from jobs.spec.data.images import ImageOptions, ImageShape

PREFIX = "images."
FITS = (
    ("fit", "whole image, black edges"),
    ("crop", "middle of the image"),
    ("stretch", "stretched"),
)
"""Values and labels of the select."""


class ImageFields(NamedTuple):
    """The field values in `data/images.html`; empty texts and None for no entry."""

    height: str | int | None
    width: str | int | None
    fit: str


def read_image_options(entries: Mapping[str, str]) -> dict[str, str]:
    """Return the options for images that were chosen in a form, by name."""
    chosen = {name: entries.get(f"{PREFIX}{name}", "").strip() for name in ImageOptions.model_fields}
    return {name: value for name, value in chosen.items() if value}


def sent_image_fields(entries: Mapping[str, str]) -> ImageFields:
    """Return the fields with a form's entries."""
    chosen = read_image_options(entries)
    return ImageFields(chosen.get("height", ""), chosen.get("width", ""), chosen.get("fit", ""))


def image_fields_of(shape: ImageShape | ImageOptions) -> ImageFields:
    """Return the fields with the actual or requested image size."""
    return ImageFields(shape.height, shape.width, shape.fit)
