"""Addresses are parsed strictly, and only hosts on the public network may be connected to."""

import socket
from typing import Any

import pytest

from jobs.errors import FetchFailed
from jobs.sources import guard
from jobs.spec.data.addresses import BadAddress, parse


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "path", "name"),
    [
        ("https://Data.Example.org/a/b.csv", "https", "data.example.org", 443, "/a/b.csv", "b.csv"),
        ("https://x.org:8443/a%20b.csv?v=1", "https", "x.org", 8443, "/a%20b.csv?v=1", "a b.csv"),
        ("https://[2001:DB8::1]/a.csv", "https", "2001:db8::1", 443, "/a.csv", "a.csv"),
        ("https://bücher.example/a.csv", "https", "xn--bcher-kva.example", 443, "/a.csv", "a.csv"),
        ("http://x.org/ü.csv", "http", "x.org", 80, "/%C3%BC.csv", "ü.csv"),
        ("s3://bucket/a/b#1.parquet", "s3", "bucket", 0, "a/b#1.parquet", "b#1.parquet"),
        ("gs://my.bucket/b.csv", "gs", "my.bucket", 0, "b.csv", "b.csv"),
        ("/data/my file.csv", "file", "", 0, "/data/my file.csv", "my file.csv"),
        ("file:///data/a%20b.csv", "file", "", 0, "/data/a b.csv", "a b.csv"),
    ],
)
def test_an_address_is_taken_apart(
    text: str, scheme: str, host: str, port: int, path: str, name: str
) -> None:
    address = parse(text)
    assert (address.scheme, address.host, address.port, address.path, address.name) == (
        scheme,
        host,
        port,
        path,
        name,
    )
    assert parse(address.url) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "people.csv",
        "ftp://x.org/a.csv",
        "https://user:pass@x.org/a.csv",
        "https://user@x.org/a.csv",
        "https:///a.csv",
        "https://x.org:99999/a.csv",
        "https://x.org:0/a.csv",
        "https://x.org/a\r\nHost: y/b.csv",
        "https://x org/a.csv",
        "https://fe80::1%25eth0/a.csv",
        "https://[fe80::1%25eth0]/a.csv",
        "s3://bucket",
        "s3://bucket/folder/",
        "s3://../key.csv",
        "file://host/data/a.csv",
        "/data/../etc/passwd",
        "file:///data/%2e%2e/etc/passwd",
        "/data//a.csv",
        "/data/./a.csv",
        "x" * 5000,
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        parse(text)


def test_a_refusal_repeats_no_password() -> None:
    with pytest.raises(BadAddress) as refused:
        parse("https://ada:opensesame@x.org/a.csv")
    assert "opensesame" not in str(refused.value)
    assert "credential of the project" in str(refused.value)


def test_the_query_of_an_address_is_not_shown() -> None:
    assert parse("https://x.org/a.csv?X-Amz-Signature=abc").shown == "https://x.org/a.csv?…"


NOT_PUBLIC = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1",
    "5f00::1", "fc00::1", "fd00::1", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1",
    "ff0e::1", "not an address",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "93.184.215.14", "172.32.0.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101",
    "2002:101:101::",
]  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_outside_of_the_public_network_are_recognized(address: str) -> None:
    assert not guard.is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_public_network_are_recognized(address: str) -> None:
    assert guard.is_public(address)


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name have these addresses, and return the names that were resolved."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        family = {True: socket.AF_INET6, False: socket.AF_INET}
        return [
            (family[":" in numeric_address], socket.SOCK_STREAM, 6, "", (numeric_address, port))
            for numeric_address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("addresses", [("10.1.2.3",), ("1.1.1.1", "127.0.0.1"), ("::ffff:10.0.0.1",)])
def test_a_name_with_a_private_address_is_refused_without_naming_the_address(
    addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, *addresses)
    with pytest.raises(FetchFailed) as refused:
        guard.resolve("innocent.example", 443)
    assert refused.value.code == "address_refused"
    assert "TRAINYARD_FETCH_ALLOW=innocent.example:443" in refused.value.message
    assert not any(address in refused.value.message for address in addresses)


def test_an_administrator_can_list_a_host_with_one_port(monkeypatch: pytest.MonkeyPatch, allow: Any) -> None:
    resolving(monkeypatch, "10.1.2.3")
    allow("data.internal", 9000)
    assert [address.address for address in guard.resolve("data.internal", 9000)] == ["10.1.2.3"]
    with pytest.raises(FetchFailed):
        guard.resolve("data.internal", 9001)
    with pytest.raises(FetchFailed):
        guard.resolve("other.internal", 9000)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"])
def test_other_ways_to_write_loopback_are_refused_once_they_are_resolved(host: str) -> None:
    with pytest.raises(FetchFailed):
        guard.resolve(host, 443)
