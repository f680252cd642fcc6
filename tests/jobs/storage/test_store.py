"""Files that a runner changes while they are stored, and downloads that are cut."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.errors import NotFound, StoreUnavailable
from jobs.store import LocalStore, ObjectStore, StoredFile


@pytest.fixture(params=["local", "memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LocalStore | ObjectStore:
    if request.param == "local":
        return LocalStore(tmp_path / "store")
    place = tmp_path.with_name(f"{tmp_path.name}-objects")
    return ObjectStore(f"{request.param}://{place}", tmp_path / "cache")


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


@pytest.fixture(params=["without a name", "with a temporary name"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files as on each kind of file system."""
    if request.param == "with a temporary name":
        monkeypatch.setattr("jobs.store.local._UNNAMED", None)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.usefixtures("way")
def test_blocks_are_stored_under_their_digest_once(store: LocalStore | ObjectStore, tmp_path: Path) -> None:
    stored = store.put_blocks(iter([b"0123", b"456789"]))
    assert stored == store.put_blocks([b"0123456789"])
    assert stored == StoredFile(hashlib.sha256(b"0123456789").hexdigest(), 10)
    assert store.path(stored.digest).read_bytes() == b"0123456789"
    assert [entry.digest for entry in store.files()] == [stored.digest]
    assert names(tmp_path) == [stored.digest]


@pytest.mark.usefixtures("way")
def test_blocks_that_end_with_an_error_leave_nothing(store: LocalStore | ObjectStore, tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"0123"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        store.put_blocks(blocks())
    assert names(tmp_path) == []


@pytest.mark.usefixtures("way")
def test_blocks_that_a_check_refuses_leave_nothing(store: LocalStore | ObjectStore, tmp_path: Path) -> None:
    def check(file: StoredFile, path: Path) -> None:
        assert (file.bytes, path.stat().st_size, path.read_bytes()) == (10, 10, b"0123456789")
        raise ConnectionError

    with pytest.raises(ConnectionError):
        store.put_blocks([b"0123", b"456789"], check=check)
    assert (names(tmp_path), list(store.files())) == ([], [])


class CutDownloads:
    """An object store whose first downloads end early."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = f"memory://{tmp_path.name}-cut"
        self.digest = ObjectStore(place, tmp_path / "first").put_blocks([b"0123456789"]).digest
        self.store = ObjectStore(place, tmp_path / "cache")
        self.cache = tmp_path / "cache"
        self.cut = self.calls = 0
        whole = self.store.fs.get_file

        def get_file(source: str, target: str) -> None:
            self.calls += 1
            whole(source, target)
            if self.calls <= self.cut:
                os.truncate(target, 4)

        monkeypatch.setattr(self.store.fs, "get_file", get_file)


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CutDownloads:
    return CutDownloads(tmp_path, monkeypatch)


def test_a_download_that_was_cut_is_repeated(cut: CutDownloads) -> None:
    cut.cut = 1
    assert cut.store.path(cut.digest).read_bytes() == b"0123456789"
    assert names(cut.cache) == [cut.digest]


def test_an_object_with_another_content_is_an_outage_of_the_store_and_not_kept(cut: CutDownloads) -> None:
    cut.cut = 2
    with pytest.raises(StoreUnavailable, match=r"another content than its name: 4 bytes with .* 2 times"):
        cut.store.path(cut.digest)
    assert (cut.calls, names(cut.cache)) == (2, [])
    # The store is well again.
    assert cut.store.path(cut.digest).read_bytes() == b"0123456789"


def test_a_cut_download_with_the_content_of_another_file_leaves_that_one(cut: CutDownloads) -> None:
    other = cut.store.put_blocks([b"0123"])
    cut.cut = 2
    with pytest.raises(StoreUnavailable):
        cut.store.path(cut.digest)
    assert cut.store.path(other.digest).read_bytes() == b"0123"


def test_a_missing_object_is_no_outage(cut: CutDownloads) -> None:
    with pytest.raises(NotFound):
        cut.store.path("0" * 64)
