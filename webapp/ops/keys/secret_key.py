"""Replaces the secret key, with an overlap in which the former one still verifies.

The file gets the next key; the database names it and is encrypted with it, in one transaction; then it is
the first one in the file. A process finds out from database and file which key signs, so the rotation may be
killed at any moment, and is repeated.
"""

import datetime as dt
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from django.conf import settings
from django.db import transaction

from jobs import clock
from jobs.actions.audit import audit, key_change
from jobs.actions.data import credentials, fetch_addresses
from jobs.actions.people import second_factors
from jobs.errors import Conflict
from jobs.keys import key_ring, secret_keys
from jobs.keys.secret_keys import SecretKeys
from jobs.queries.code.installation import current_settings
from webapp.ops.errors import OpsError

ENCRYPTED: dict[str, Callable[[], int]] = {
    "credentials of projects": credentials.reseal_all,
    "addresses of data": fetch_addresses.reseal_all,
    "second factors": second_factors.reseal_all,
}
"""The values that the database encrypts with the secret key, and the functions that do it again."""


@dataclass(frozen=True)
class Rotation:
    """The result.

    Attributes:
        key: the name of the key that signs now.
        former: the name of the one before.
        until: how long that one verifies.
        lost: what cannot be decrypted, since its key was lost before.
    """

    key: str
    former: str
    until: dt.datetime
    lost: tuple[str, ...]


def prepare() -> str:
    """Add the next key to the file, with which nothing is signed yet. Return its name.

    Raises:
        OpsError: the file cannot be written.
    """
    keys = _with_next(_present_keys())
    return key_ring.name_of_key(keys.next)


def rotate(overlap: dt.timedelta) -> Rotation:
    """Let the next key sign.

    Args:
        overlap: how long sessions that the former key has signed stay valid.

    Raises:
        OpsError: the file cannot be written, or the audit log is not valid.
    """
    keys = _with_next(_present_keys())
    until = clock.now() + overlap
    former, name = key_ring.name_of_key(keys.present), key_ring.name_of_key(keys.next)
    lost: tuple[str, ...] = ()
    # Otherwise an earlier run was killed between its last two steps.
    if current_settings().key != name:
        lost = _change_database(keys, until)
    promoted = _without_expired(keys).promoted(until)
    _write(promoted)
    key_ring.use(promoted)
    return Rotation(name, former, until, lost)


def forget() -> tuple[str, ...]:
    """Encrypt again, and remove all former keys. Return the values that cannot be decrypted.

    Raises:
        OpsError: the file cannot be written.
    """
    keys = _present_keys()
    if not keys.former:
        raise OpsError("There is no former key.")
    key_ring.use(keys)
    with transaction.atomic():
        lost = _encrypt_anew()
        audit.record("keys.forget", "installation", by=None, keys=len(keys.former))
    _write(replace(keys, former=()))
    return lost


def _change_database(keys: SecretKeys, until: dt.datetime) -> tuple[str, ...]:
    """Seal the audit log and encrypt the database with the next key. Return what cannot be decrypted."""
    key_ring.use(keys)
    former, name = key_ring.name_of_key(keys.present), key_ring.name_of_key(keys.next)
    try:
        verification, digest = key_change.digest_before_change()
        with transaction.atomic():
            key_change.change_key(verification, digest, lambda: key_ring.use(keys.promoted(until)))
            lost = _encrypt_anew()
            audit.record(
                "keys.rotate", "installation", by=None, key=name, former=former, until=until.isoformat()
            )
    except Conflict as error:
        raise OpsError(error.message) from error
    finally:
        # The file still has the former order, which another process may read.
        key_ring.use(keys)
    return lost


def _encrypt_anew() -> tuple[str, ...]:
    found = {name: reseal() for name, reseal in ENCRYPTED.items()}
    return tuple(f"{count} {name}" for name, count in found.items() if count)


def _present_keys() -> SecretKeys:
    """Return the file's keys, in the order that the database knows."""
    path = Path(settings.TRAINYARD_SECRET_KEY_FILE)
    try:
        keys = secret_keys.parse(path.read_text())
    except (OSError, ValueError) as error:
        raise OpsError(f"{path} cannot be read: {error}") from error
    return keys


def _with_next(keys: SecretKeys) -> SecretKeys:
    if keys.next:
        return keys
    keys = replace(keys, next=secrets.token_urlsafe(64))
    _write(keys)
    return keys


def _without_expired(keys: SecretKeys) -> SecretKeys:
    now = clock.now()
    return replace(keys, former=tuple(key for key in keys.former if key.until > now))


def _write(keys: SecretKeys) -> None:
    path = Path(settings.TRAINYARD_SECRET_KEY_FILE)
    try:
        secret_keys.write(path, keys)
    except OSError as error:
        raise OpsError(
            f"{path} cannot be written ({error.strerror}). Copy it to a file that can be, set "
            "TRAINYARD_SECRET_KEY_FILE to that one for this command, and put the result back for all parts."
        ) from error
