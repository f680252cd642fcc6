"""Refuses to start a part that belongs to another installation than its database.

Each part calls `require_own_installation` at its start, before it writes anything. `CHECKS` are its steps, in
this order; each returns the sentence with which the part is refused, or None. The database has the
installation's identity and the name of its secret key; a home has the identity of its database.
"""

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

from jobs import audit_chain, program
from jobs.atomic_files import create_once
from jobs.errors import ForeignInstallation
from jobs.keys import key_ring
from jobs.models import InstallationSettings
from jobs.queries import compatibility
from jobs.queries.code.installation import KEY
from jobs.queries.storage import ownership

log = logging.getLogger(__name__)

IDENTITY_FILE = "installation.id"
"""The file in the home with the identity of its database."""


@dataclass(frozen=True)
class Part:
    """The part that starts.

    Attributes:
        signs: whether it signs sessions, tokens or the audit log. Such a part must have the secret key, and
            the first one names the key in the database.
        row: the database's record.
    """

    signs: bool
    row: InstallationSettings


def require_own_installation(*, signs: bool) -> None:
    """Compare the program, the home and the secret key with the database.

    Args:
        signs: see `Part`.

    Raises:
        Incompatible: the database belongs to another version of the program.
        ForeignInstallation: they belong to another installation. The message is one sentence.
    """
    # First: the database of another version may lack the table that the others read.
    compatibility.require()
    if (refusal := problem(signs=signs)) is not None:
        raise ForeignInstallation(refusal)


def problem(*, signs: bool) -> str | None:
    """Return why the home or the secret key are not those of the database's installation; None if they are.

    Args:
        signs: see `Part`.
    """
    part = Part(signs, ensured_row())
    refusals = (check(part) for check in CHECKS)
    return next((refusal for refusal in refusals if refusal is not None), None)


def problem_before_migration() -> str | None:
    """Return why the home or the secret key are not those of a database that may have an older schema.

    Nothing is written. A database without an identity passes: it is new, or older than identities.
    """
    if _has_its_database():
        return None
    home = _foreign_home(ownership.older_identity())
    return home or _foreign_key(compatibility.recorded("key"), signs=True)


def ensured_row() -> InstallationSettings:
    """Return the database's record, with an identity: the first part that starts makes it."""
    identity, is_copy = ownership.identity()
    if not identity or is_copy:
        _write_identity()
    return InstallationSettings.objects.get(pk=KEY)


def _write_identity() -> None:
    with transaction.atomic():
        InstallationSettings.objects.get_or_create(pk=KEY)
        # Locked: several parts may start at the same time.
        row = InstallationSettings.objects.select_for_update(no_key=True).get(pk=KEY)
        identity, _ = ownership.identity()
        if not identity or row.identity != identity:
            row.identity = identity or uuid.uuid4().hex
            row.save(update_fields=["identity"])


def follow_key() -> None:
    """Use the secret key that the database names, if this process has it, or its file: it may be rotated."""
    key_ring.refresh()
    if key := InstallationSettings.objects.filter(pk=KEY).values_list("key", flat=True).first():
        key_ring.adopt(key)


def recorded_identity() -> str:
    """Return the identity that the home has recorded of its database; empty if it has none."""
    try:
        return (Path(settings.TRAINYARD_HOME) / IDENTITY_FILE).read_text().strip()
    except OSError:
        return ""


def adopt_key() -> None:
    """Make the present secret key the installation's: an operator accepts that the former one is lost."""
    InstallationSettings.objects.filter(pk=KEY).update(key=audit_chain.key_id())


def _check_home(part: Part) -> str | None:
    if _has_its_database():
        return None
    create_once(Path(settings.TRAINYARD_HOME) / IDENTITY_FILE, part.row.identity.encode())
    return _foreign_home(part.row.identity)


def _foreign_home(identity: str) -> str | None:
    """Return why the home is not that of the database with this identity; None if one of them has none."""
    file = Path(settings.TRAINYARD_HOME) / IDENTITY_FILE
    if not identity or not file.exists() or (own := file.read_text().strip()) == identity:
        return None
    return (
        f"The home {file.parent} belongs to installation {own[:8]}, but the database to installation "
        f"{identity[:8]}: correct TRAINYARD_HOME or TRAINYARD_DATABASE_URL, or remove {file} if "
        "this home is to be used with the database from now on."
    )


def _check_key(part: Part) -> str | None:
    if not audit_chain.has_key():
        return None
    if part.signs and not part.row.key:
        InstallationSettings.objects.filter(pk=KEY, key="").update(key=audit_chain.key_id())
        part.row.refresh_from_db()
    if (sentence := _foreign_key(part.row.key, signs=part.signs)) is None or not _has_its_database():
        return sentence
    # The home lost its key, and a new one was made. The audit log shows it, and the installation runs.
    if part.signs:
        log.warning("the secret key of this home was replaced: users must log in again")
        adopt_key()
    return None


def _foreign_key(key: str, *, signs: bool) -> str | None:
    """Return why this process's secret key is not the one with this name; None if one of them is missing."""
    if not audit_chain.has_key() or key in ("", own := audit_chain.key_id()) or key_ring.adopt(key):
        return None
    file = settings.TRAINYARD_SECRET_KEY_FILE
    own, key = own[:8], key[:8]
    difference = f"The secret key in {file} is {own}, but that of the database's installation is {key}"
    if not signs:
        return f"{difference}: remove the file, since a worker needs no key."
    return (
        f"{difference}: copy the file from the machine on which the dashboard runs, or, if "
        f"that key is lost, accept the present one by `{program.command_line('audit seal --reason "…"')}`."
    )


def _has_its_database() -> bool:
    """Return whether the database is a file in the home, so that both belong together in any case."""
    # Resolved: addresses such as `sqlite:////srv/db` lead to paths that begin with two slashes.
    file = Path(connection.settings_dict["NAME"]).resolve()
    return connection.vendor == "sqlite" and file.is_relative_to(Path(settings.TRAINYARD_HOME).resolve())


CHECKS: tuple[Callable[[Part], str | None], ...] = (_check_home, _check_key)
