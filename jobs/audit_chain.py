"""Computes the audit chain's hashes: for its rows, its head, and sealed rows.

The keys are made from the installation's secret key, each with a salt of its own.
"""

import datetime as dt
import hashlib
import json
from typing import Any

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from jobs.keys import key_ring
from jobs.models import AuditEvent, AuditHead

ROW_SALT = "trainyard.audit.row"
HEAD_SALT = "trainyard.audit.head"
GENESIS = "0" * 64
HEAD_ID = 1
COVERED = (
    "id",
    "number",
    "time",
    "actor_id",
    "action",
    "target",
    "project_id",
    "detail",
    "previous_hash",
)
"""The columns that a row's hash covers: all but the hash itself."""


def has_key() -> bool:
    """Return whether this process has the secret key, without which it cannot append rows."""
    return bool(settings.TRAINYARD_HAS_KEY)


def row_hash(event: AuditEvent) -> str:
    """Return the HMAC of a row's fields, one of which is the row's hash before it."""
    return _hmac(ROW_SALT, _canonical_text([getattr(event, name) for name in COVERED]))


def head_mac(number: int, last_hash: str) -> str:
    """Return a head's HMAC."""
    return _hmac(HEAD_SALT, f"{number} {last_hash}")


def key_id() -> str:
    """Return the secret key's name; it does not reveal the key."""
    return key_ring.name_of_key()


def is_authentic(head: AuditHead) -> bool:
    """Return whether the head was written with the present secret key and not changed since."""
    return constant_time_compare(head.mac, head_mac(head.number, head.hash))


class Digest:
    """The SHA-256 over rows with their hashes, by ascending number. It needs no key."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.rows = 0
        self.last_number = 0

    def add(self, event: AuditEvent) -> None:
        """Add the next row."""
        values = [getattr(event, name) for name in COVERED]
        self._sha256.update(_canonical_text([*values, event.hash]).encode() + b"\n")
        self.rows, self.last_number = self.rows + 1, event.number

    def hex(self) -> str:
        """Return the digest over the rows so far."""
        return self._sha256.hexdigest()


def _hmac(salt: str, text: str) -> str:
    return salted_hmac(salt, text, algorithm="sha256").hexdigest()


def _canonical_text(values: list[Any]) -> str:
    return json.dumps([_canonical(value) for value in values], sort_keys=True, separators=(",", ":"))


def _canonical(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, dict | list):
        # Integers are read as floats, because PostgreSQL returns 1e20 as an integer.
        return json.loads(json.dumps(value), parse_int=float)
    return value
