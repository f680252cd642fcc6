"""Stores artifacts by their sha256 digest, in a local folder or in object storage."""

from functools import cache
from pathlib import Path

from django.conf import settings

from jobs.store.base import ArtifactStore, StoredFile, StoreEntry, is_digest, sha256_of
from jobs.store.checkpoint_copies import CheckpointCopies
from jobs.store.local import LocalStore
from jobs.store.object_store import ObjectStore
from jobs.store.permission import require_permission

__all__ = [
    "CACHE_FOLDER",
    "CheckpointCopies",
    "LocalStore",
    "ObjectStore",
    "StoreEntry",
    "StoredFile",
    "is_digest",
    "sha256_of",
    "store",
]


CACHE_FOLDER = "artifact-cache"
"""The folder of the home with copies of files in object storage, and the checkpoints of this machine."""


# The settings are arguments, because tests change them.
@cache
def _store(url: str, home: str) -> ArtifactStore:
    if "://" in url:
        limit = settings.TRAINYARD_ARTIFACT_CACHE_BYTES
        return ObjectStore(url, Path(home) / CACHE_FOLDER, require_permission, limit=limit)
    return LocalStore(Path(url), require_permission)


def store() -> ArtifactStore:
    """Return the installation's store (`TRAINYARD_ARTIFACTS`: a folder or an fsspec URL)."""
    return _store(str(settings.TRAINYARD_ARTIFACTS), str(settings.TRAINYARD_HOME))
