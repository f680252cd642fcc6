"""Reads objects in Google Cloud Storage through gcsfs, which the extra `gs` installs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import fsspec

from jobs.errors import FetchFailed
from jobs.sources.base import BLOCK, Source, plain
from jobs.spec.data.addresses import Address
from jobs.spec.data.credentials import Credential, GcsCredential


def require_installed() -> None:
    """Refuse Google Cloud Storage addresses where gcsfs is not installed.

    Raises:
        FetchFailed: it is not.
    """
    if find_spec("gcsfs") is None:
        raise FetchFailed(
            "gs:// addresses need the package gcsfs, which this installation lacks. The operator can install "
            "the extra `gs` of Trainyard.",
            code="not_installed",
        )


def open_gcs(address: Address, credential: Credential | None) -> Source:
    """Open an object.

    Args:
        address: its bucket and key.
        credential: a service account; without one the object must be public.

    Raises:
        FetchFailed: gcsfs is not installed, or the object cannot be read.
    """
    require_installed()
    account = credential.account.get_secret_value() if isinstance(credential, GcsCredential) else None
    place = f"{address.host}/{address.path}"
    with _reported():
        files = fsspec.filesystem(
            "gcs",
            # Without an account nothing may be taken from this machine instead.
            token=json.loads(account) if account is not None else "anon",
            skip_instance_cache=True,
            use_listings_cache=False,
        )
        facts = files.info(place)
        opened = files.open(place, "rb")
    return Source(
        size=facts.get("size"),
        blocks=_blocks(opened),
        etag=plain(facts.get("etag"), 200),
        modified=plain(facts.get("updated"), 64),
    )


def _blocks(opened: Any) -> Iterator[bytes]:
    with opened:
        while True:
            with _reported():
                block = opened.read(BLOCK)
            if not block:
                return
            yield block


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    # gcsfs, google-auth and aiohttp raise errors that have no common base.
    except Exception as error:
        raise _failure(error) from error


def _failure(error: Exception) -> FetchFailed:
    """Return a sentence without the error's message, which may contain the server's answer."""
    if isinstance(error, FileNotFoundError):
        return FetchFailed("Google Cloud Storage has no such object.", code="source_refused")
    return FetchFailed("Google Cloud Storage did not send the object.", code="source_refused")
