"""Reads and writes the pipeline inside a `.keras` file."""

import zipfile
from pathlib import Path

from pydantic import ValidationError

from jobs.spec.data.features import Features

MEMBER = "features.json"
MAX_BYTES = 32 << 20
MAX_REASON = 300
"""Maximum number of characters of a message, which may quote the file."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


class BadFeatures(ValueError):
    """The pipeline inside a model's file cannot be used."""


def add_features(path: Path, features: Features) -> None:
    """Add a pipeline to a `.keras` file that has none. Keras ignores it."""
    # A fixed time, so that equal models have equal digests.
    member = zipfile.ZipInfo(MEMBER, date_time=_EPOCH)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, features.model_dump_json(), compress_type=zipfile.ZIP_DEFLATED)


def read_features(path: Path) -> Features | None:
    """Return the pipeline in a model's file; None if it has none.

    Raises:
        BadFeatures: it is too large or invalid.
    """
    with zipfile.ZipFile(path) as archive:
        if MEMBER not in archive.namelist():
            return None
        size = archive.getinfo(MEMBER).file_size
        if size > MAX_BYTES:
            raise BadFeatures(f"its {MEMBER} has {size:,} bytes; at most {MAX_BYTES:,} are read")
        try:
            return Features.model_validate_json(archive.read(MEMBER))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = f"{first['loc']}: {first['msg']}"[:MAX_REASON]
            raise BadFeatures(f"its {MEMBER} is invalid: {reason}") from error
