"""Profiles of data sets, and helpers that make bundled data sets ready."""

from typing import Any

from jobs.actions.data import datasets, profiles
from jobs.models import Artifact, DatasetVersion
from jobs.spec.data.profile import Profile

DIGITS: dict[str, Any] = {
    "rows": 1797,
    "kind": "image",
    "task": "multiclass",
    "target": "digit",
    "features": ["image"],
    "input_shape": [8, 8, 1],
    "outputs": 10,
    "class_labels": [str(digit) for digit in range(10)],
    "class_counts": [178, 182, 177, 183, 181, 182, 181, 179, 174, 180],
    "columns": [
        {
            "name": "image",
            "dtype": "float32",
            "shape": [8, 8],
            "min": 0.0,
            "max": 16.0,
            "mean": 4.88,
            "std": 6.02,
            "histogram": [56000, 9000, 4000, 3000, 2500] * 4,
        },
        {"name": "digit", "dtype": "int64", "distinct": 10, "min": 0, "max": 9, "mean": 4.5, "std": 2.9},
    ],
    "preview": [{"image": [[float((i + j) % 17) for j in range(8)] for i in range(8)], "digit": 3}] * 3,
}
DIABETES: dict[str, Any] = {
    "rows": 442,
    "kind": "vector",
    "task": "regression",
    "target": "progression",
    "features": ["age", "bmi"],
    "input_shape": [2],
    "outputs": 1,
    "columns": [
        {"name": name, "dtype": "float64", "min": 0.0, "max": 9.0, "mean": 4.0, "std": 2.0}
        for name in ("age", "bmi", "progression")
    ],
    "preview": [{"age": 59, "bmi": None, "progression": 151.0}],
    "findings": ["Column 'bmi' is constant and has no information."],
}


PETS: dict[str, Any] = {
    "rows": 30,
    "kind": "image",
    "task": "binary",
    "target": "label",
    "features": ["image"],
    "input_shape": [8, 12, 3],
    "has_pipeline": True,
    "outputs": 2,
    "class_labels": ["cat", "dog"],
    "class_counts": [10, 20],
    "columns": [
        {
            "name": "image",
            "dtype": "uint8",
            "shape": [8, 12, 3],
            "role": "feature",
            "type": "image",
            "image": {"height": 8, "width": 12, "channels": 3, "fit": "crop"},
        },
        {
            "name": "file",
            "dtype": "text",
            "role": "id",
            "type": "category",
            "distinct": 30,
            "reason": "a path",
        },
        {"name": "label", "dtype": "text", "role": "target", "type": "category", "distinct": 2},
    ],
    "images": {
        "shape": {"height": 8, "width": 12, "channels": 3, "fit": "crop"},
        "heights": {"min": 7, "median": 8, "max": 900},
        "widths": {"min": 9, "median": 12, "max": 1200},
        "formats": {"JPEG": 29, "PNG": 1},
        "hidden": 3,
        "thumbnails": {"side": 64, "tiles": 8, "labels": ["cat", "dog"], "counts": [8, 5]},
    },
    "preview": [{"file": "cat/1.png", "label": "cat"}],
}
"""An archive of images."""


def make_ready(version: DatasetVersion, profile: dict[str, Any]) -> DatasetVersion:
    """Complete a version's profile job."""
    table, _ = Artifact.objects.get_or_create(digest="d" * 64, defaults={"bytes": 100})
    profiles.record_profile(version.pk, Profile.model_validate(profile), "e" * 64, table)
    version.refresh_from_db()
    return version


def bundle() -> dict[str, DatasetVersion]:
    """Make the bundled data sets, digits and diabetes ready."""
    versions = {version.dataset.slug: version for version in datasets.ensure_bundled()}
    make_ready(versions["digits"], DIGITS)
    make_ready(versions["diabetes"], DIABETES)
    return versions


SHOP: dict[str, Any] = {
    "dialect": {},
    "rows": 40,
    "kind": "vector",
    "task": "regression",
    "target": "price",
    "features": ["city", "bought"],
    "input_shape": [13],
    "has_pipeline": True,
    "blocks": [
        {"column": "city", "start": 0, "positions": 5, "kind": "plain"},
        {"column": "bought", "start": 5, "positions": 8, "kind": "number"},
    ],
    "outputs": 1,
    "columns": [
        {
            "name": "id",
            "role": "id",
            "type": "integer",
            "dtype": "int64",
            "distinct": 40,
            "reason": "it has another value in every row, so it identifies rows",
        },
        {
            "name": "city",
            "role": "feature",
            "type": "category",
            "dtype": "text",
            "distinct": 3,
            "values": ["Paris", "Rome", "O'Fallon"],
        },
        {"name": "bought", "role": "feature", "type": "date", "dtype": "datetime64[us]", "missing": 2},
        {"name": "price", "role": "target", "type": "number", "dtype": "float64", "min": 1.0, "max": 9.5},
    ],
    "preview": [{"id": 1, "city": "O'Fallon", "bought": "2026-11-01T00:00:00.000000", "price": 5.0}],
}
"""A table with a pipeline."""
