"""Reads files below the folders that the operator allowed with `TRAINYARD_DATA_ROOTS`."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePath

from django.conf import settings

from jobs import runner_files
from jobs.errors import FetchFailed
from jobs.sources.base import BLOCK, Source
from jobs.spec.data.addresses import Address


def require_allowed(address: Address) -> None:
    """Refuse a path that is not below an allowed folder.

    Raises:
        FetchFailed: it is not.
    """
    _root_of(address)


def open_file(address: Address) -> Source:
    """Open a file, without following links below the allowed folder.

    Raises:
        FetchFailed: it is not below an allowed folder, is missing, is no regular file, or cannot be read.
    """
    root, relative = _root_of(address)
    try:
        descriptor = runner_files.open_regular(Path(root), relative)
    except (OSError, ValueError) as error:
        # Without the reason, which would reveal other files.
        raise FetchFailed(
            f"{address.shown} is no file that can be read. Links are not followed.", code="source_refused"
        ) from error
    facts = os.fstat(descriptor)
    return Source(
        size=facts.st_size,
        blocks=_blocks(descriptor, facts),
        modified=datetime.fromtimestamp(facts.st_mtime, UTC).isoformat(),
    )


def _root_of(address: Address) -> tuple[str, str]:
    """Return a file's allowed folder, and the path of the file below it."""
    path = PurePath(address.path)
    for root in settings.TRAINYARD_DATA_ROOTS:
        if path.is_relative_to(root) and path != PurePath(root):
            return root, str(path.relative_to(root))
    if not settings.TRAINYARD_DATA_ROOTS:
        message = "No folder of this machine is open for data. The operator can set TRAINYARD_DATA_ROOTS."
    else:
        message = f"{address.shown} is not below a folder that the operator opened with TRAINYARD_DATA_ROOTS."
    raise FetchFailed(message, code="address_refused")


def _blocks(descriptor: int, before: os.stat_result) -> Iterator[bytes]:
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while block := file.read(BLOCK):
            yield block
        after = os.fstat(descriptor)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise FetchFailed("The file was changed while it was read.", code="source_changed")
