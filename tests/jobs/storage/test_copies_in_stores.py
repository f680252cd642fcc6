"""Copies of checkpoints in each kind of store: in memory, in a folder that is mounted, on S3."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import fsspec
import pytest
from moto.server import ThreadedMotoServer

from jobs.errors import NotFound
from jobs.store import CheckpointCopies, ObjectStore

FOLDER = "job-7/trial-1/execution-1/0000000179-2"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    yield "http://127.0.0.1:{1}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture(params=["memory", "file", "s3"])
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointCopies:
    if request.param != "s3":
        store = ObjectStore(f"{request.param}://{tmp_path}/store", tmp_path / "cache")
        assert store.checkpoint_copies is not None
        return store.checkpoint_copies
    url = request.getfixturevalue("endpoint")
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **keys).create_bucket(Bucket="bucket")
    return CheckpointCopies(
        fsspec.filesystem("s3", key="key", secret="secret", endpoint_url=url), "bucket/path"
    )


def test_a_copy_is_found_read_and_deleted(copies: CheckpointCopies, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"0123456789")
    copies.put(FOLDER, tmp_path / "archive")
    copies.put(FOLDER, tmp_path / "archive")
    assert [(entry.folder, entry.bytes) for entry in copies.entries()] == [(FOLDER, 10)]
    copies.get(FOLDER, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"0123456789"
    for _ in range(2):
        copies.erase(FOLDER)
    assert list(copies.entries()) == []
    with pytest.raises(NotFound):
        copies.get(FOLDER, tmp_path / "again")


def test_in_a_mounted_folder_a_copy_appears_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(f"file://{tmp_path}/store", tmp_path / "cache")
    assert store.checkpoint_copies is not None
    (tmp_path / "archive").write_bytes(b"0123456789")

    def stop(source: str, place: str) -> None:
        Path(place).write_bytes(b"01234")
        raise ConnectionError("the network is gone")

    monkeypatch.setattr(store.fs, "put_file", stop)
    with pytest.raises(ConnectionError):
        store.checkpoint_copies.put(FOLDER, tmp_path / "archive")
    assert list(store.checkpoint_copies.entries()) == []
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
