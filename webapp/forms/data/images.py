"""The fields for the size of images in the forms of uploads."""

from collections.abc import Mapping

from jobs.spec.data.images import ImageOptions, ImageShape

PREFIX = "images."
FITS = (
    ("fit", "whole image, black edges"),
    ("crop", "middle of the image"),
    ("stretch", "stretched"),
)
"""Values and labels of the select."""


def read(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options for images that were chosen in a form, by name."""
    chosen = {name: given.get(f"{PREFIX}{name}", "").strip() for name in ImageOptions.model_fields}
    return {name: value for name, value in chosen.items() if value}


def fields(given: Mapping[str, str]) -> dict[str, object]:
    """Return the context of `data/images.html` for the values that were sent."""
    chosen = read(given)
    return {
        "height": chosen.get("height", ""),
        "width": chosen.get("width", ""),
        "fit": chosen.get("fit", ""),
    }


def fields_of(shape: ImageShape | ImageOptions) -> dict[str, object]:
    """Return the context of `data/images.html` for the size that a version has or was to have."""
    return {"height": shape.height, "width": shape.width, "fit": shape.fit}
