"""Files that a runner changes while they are stored."""

import os
from pathlib import Path

import pytest

from jobs.store import LocalStore, ObjectStore, StoredFile


@pytest.fixture(params=["local", "object"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LocalStore | ObjectStore:
    if request.param == "local":
        return LocalStore(tmp_path / "store")
    return ObjectStore(f"memory://{tmp_path}", tmp_path / "cache")


def test_a_file_that_was_enlarged_after_its_check_is_refused_without_reading_it(
    store: LocalStore | ObjectStore, tmp_path: Path
) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"0123456789")
    # A sparse file, whose terabyte takes no space.
    os.truncate(path, 2**40)
    with pytest.raises(OSError, match="changed while it was stored"):
        store.put(path, size=10)
    assert list(store.files()) == []


def test_a_file_that_was_shortened_is_refused(store: LocalStore | ObjectStore, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"01234")
    with pytest.raises(OSError, match="changed while it was stored"):
        store.put(path, size=10)


def test_a_file_of_the_checked_size_is_stored(store: LocalStore | ObjectStore, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"0123456789")
    stored = store.put(path, size=10)
    assert isinstance(stored, StoredFile)
    assert store.path(stored.digest).read_bytes() == b"0123456789"
