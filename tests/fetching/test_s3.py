"""S3 objects are read through s3fs, with the same endpoint checks as other hosts."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from jobs.errors import FetchFailed
from jobs.sources.s3 import open_s3
from jobs.spec.data.addresses import parse
from jobs.spec.data.credentials import CREDENTIAL, Credential
from tests.fetching.servers import endless, file, redirect, serving

CSV = b"age,price\n1,2\n"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="bucket")
    client.put_object(Bucket="bucket", Key="folder/a b.csv", Body=CSV)
    yield port
    server.stop()


def credential(port: int, **fields: str) -> Credential:
    body = {"kind": "s3", "key_id": "key", "secret": "secret", "endpoint": f"http://127.0.0.1:{port}"}
    return CREDENTIAL.validate_python(body | fields)


def test_an_object_is_read_with_its_size_tag_and_time(port: int, allow: Any) -> None:
    allow("127.0.0.1", port)
    source = open_s3(parse("s3://bucket/folder/a b.csv"), credential(port))
    assert source.size == len(CSV)
    assert source.etag.strip('"') and source.modified
    assert b"".join(source.blocks) == CSV


def test_an_endpoint_by_name_is_resolved_and_checked(port: int, allow: Any) -> None:
    named = credential(port, endpoint=f"http://localhost:{port}")
    with pytest.raises(FetchFailed) as refused:
        open_s3(parse("s3://bucket/folder/a b.csv"), named)
    assert refused.value.code == "address_refused"
    allow("localhost", port)
    assert b"".join(open_s3(parse("s3://bucket/folder/a b.csv"), named).blocks) == CSV


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:{}", "https://127.0.0.1:{}", "https://localhost:{}"])
def test_an_endpoint_that_is_not_public_is_refused_without_a_connection(endpoint: str) -> None:
    with serving(file(CSV)) as server:
        key = credential(server.port, endpoint=endpoint.format(server.port))
        with pytest.raises(FetchFailed) as refused:
            open_s3(parse("s3://bucket/a.csv"), key)
        assert refused.value.code == "address_refused"
        assert server.connections == 0


def test_a_missing_object_and_a_missing_bucket_are_reported(port: int, allow: Any) -> None:
    allow("127.0.0.1", port)
    for address in ("s3://bucket/none.csv", "s3://nobucket/a.csv"):
        with pytest.raises(FetchFailed) as failed:
            open_s3(parse(address), credential(port))
        assert failed.value.code == "source_refused"


def test_an_endpoint_does_not_lead_to_another_host(allow: Any) -> None:
    with serving(file(CSV)) as other, serving(redirect(f"http://127.0.0.1:{other.port}/")) as server:
        allow("127.0.0.1", server.port)
        with pytest.raises(FetchFailed):
            open_s3(parse("s3://bucket/a.csv"), credential(server.port))
        assert other.connections == 0


def test_without_a_credential_nothing_of_the_machine_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from jobs.sources import s3

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-machine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-machine")
    files = s3._file_system(None, None, s3._Connections())
    assert files.anon and files.key is None


def test_an_endless_object_is_passed_on_in_blocks(allow: Any) -> None:
    with serving(endless) as server:
        allow("127.0.0.1", server.port)
        blocks = open_s3(parse("s3://bucket/a.csv"), credential(server.port)).blocks
        assert all(len(next(blocks)) <= 2**20 for _ in range(50))
