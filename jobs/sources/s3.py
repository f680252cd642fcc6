"""Reads objects in S3, or on a server that speaks its protocol, through s3fs."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import s3fs
from aiohttp.abc import AbstractResolver, ResolveResult
from botocore.exceptions import BotoCoreError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError
from fsspec.asyn import sync

from jobs.errors import FetchFailed
from jobs.sources import guard, web
from jobs.sources.base import BLOCK, CONNECT_SECONDS, STALL_SECONDS, Source, plain
from jobs.spec.data.addresses import Address
from jobs.spec.data.credentials import Credential, S3Credential

DEFAULT_REGION = "us-east-1"


def open_s3(address: Address, credential: Credential | None) -> Source:
    """Open an object.

    Args:
        address: its bucket and key.
        credential: with the endpoint; without one the object must be public on Amazon's S3.

    Raises:
        FetchFailed: the endpoint is refused, or does not send the object.
    """
    key = credential if isinstance(credential, S3Credential) else None
    endpoint = key.endpoint_address() if key is not None else None
    if endpoint is not None:
        web.require_allowed(endpoint)
    connections = _Connections()
    files = _file_system(key, endpoint, connections)
    answer = _call(files, connections, files._call_s3, "get_object", Bucket=address.host, Key=address.path)
    modified = answer.get("LastModified")
    return Source(
        size=answer.get("ContentLength"),
        blocks=_blocks(files, connections, answer["Body"]),
        etag=plain(answer.get("ETag"), 200),
        modified=modified.isoformat() if modified is not None else "",
    )


def _file_system(
    key: S3Credential | None, endpoint: Address | None, connections: "_Connections"
) -> s3fs.S3FileSystem:
    files = s3fs.S3FileSystem(
        key=key.key_id if key is not None else None,
        secret=key.secret.get_secret_value() if key is not None else None,
        # Without a key nothing may be taken from this machine instead.
        anon=key is None,
        endpoint_url=endpoint.url if endpoint is not None else None,
        client_kwargs={"region_name": (key.region if key is not None else "") or DEFAULT_REGION},
        config_kwargs={
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": STALL_SECONDS,
            "retries": {"total_max_attempts": 1},
            # None from the environment: the connection must be the one that was checked.
            "proxies": {},
            "connector_args": {"resolver": connections, "socket_factory": connections.socket_for},
            # The bucket in the path, so that the host is that of the endpoint.
            **({"s3": {"addressing_style": "path"}} if endpoint is not None else {}),
        },
        skip_instance_cache=True,
        use_listings_cache=False,
    )
    files.retries = 1
    return files


class _Connections(AbstractResolver):
    """Resolves and checks hosts, and opens sockets for the addresses that were checked alone.

    Attributes:
        refusal: why the last connection was refused. The libraries wrap the error in others.
    """

    def __init__(self) -> None:
        self.refusal: FetchFailed | None = None
        self._checked: set[tuple[str, int]] = set()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return a host's checked addresses."""
        del family
        try:
            endpoints = await asyncio.to_thread(guard.resolve, host, port)
        except FetchFailed as error:
            self.refusal = error
            raise OSError("the host is refused") from error
        self._checked |= {(endpoint.address, endpoint.port) for endpoint in endpoints}
        return [
            ResolveResult(
                hostname=host,
                host=endpoint.address,
                port=endpoint.port,
                family=endpoint.family,
                proto=0,
                flags=0,
            )
            for endpoint in endpoints
        ]

    async def close(self) -> None:
        """Do nothing: it holds no connection."""

    def socket_for(self, place: Any) -> socket.socket:
        """Return a socket for an address that was checked, or that is written in digits and allowed."""
        family, kind, protocol, _, (address, port, *_) = place
        if (address, port) not in self._checked:
            # Hosts in digits are not resolved.
            is_allowed = guard.is_public(address) or guard.is_listed(address, port)
            if not is_allowed:
                self.refusal = guard.not_public(address, port)
                raise OSError("the address is refused")
        return socket.socket(family, kind, protocol)


def _call(
    files: s3fs.S3FileSystem, connections: _Connections, function: Any, *arguments: Any, **named: Any
) -> Any:
    """Return the result from one of the file system's coroutine functions.

    Raises:
        FetchFailed: it failed. The message contains nothing from the answer, and no secret.
    """
    try:
        return sync(files.loop, function, *arguments, **named)
    except (OSError, BotoCoreError, ValueError, EOFError) as error:
        if connections.refusal is not None:
            raise connections.refusal from error
        raise _failure(error) from error


def _failure(error: Exception) -> FetchFailed:
    match error:
        case PermissionError() | NoCredentialsError():
            return FetchFailed(
                "S3 refuses access to the object, or the key is not valid.", code="source_refused"
            )
        case FileNotFoundError():
            return FetchFailed("S3 has no such bucket or object.", code="source_refused")
        case TimeoutError() | ConnectTimeoutError() | ReadTimeoutError():
            return FetchFailed(f"S3 sent nothing for {STALL_SECONDS:.0f} seconds.", code="stalled")
    return FetchFailed(
        "S3 did not send the object: the connection failed, or the answer is not valid.",
        code="connection_failed",
    )


def _blocks(files: s3fs.S3FileSystem, connections: _Connections, body: Any) -> Iterator[bytes]:
    try:
        while block := _call(files, connections, body.read, BLOCK):
            yield block
    finally:
        body.close()
