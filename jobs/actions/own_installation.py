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
from django.db import connection

from jobs import audit_chain, program
from jobs.atomic_files import create_once
from jobs.errors import ForeignInstallation
from jobs.models import Installation

log = logging.getLogger(__name__)

ROW = 1
"""The only row's primary key."""
IDENTITY_FILE = "installation.id"


@dataclass(frozen=True)
class Part:
    """The part that starts.

    Attributes:
        signs: whether it signs sessions, tokens or the audit log. Such a part must have the secret key, and
            the first one names the key in the database.
        row: the database's record.
    """

    signs: bool
    row: Installation


def require_own_installation(*, signs: bool) -> None:
    """Compare the home and the secret key with the database.

    Args:
        signs: see `Part`.

    Raises:
        ForeignInstallation: they belong to another installation. The message is one sentence.
    """
    row, _ = Installation.objects.get_or_create(pk=ROW, defaults={"identity": uuid.uuid4().hex})
    part = Part(signs, row)
    for check in CHECKS:
        if (refusal := check(part)) is not None:
            raise ForeignInstallation(refusal)


def adopt_key() -> None:
    """Make the present secret key the installation's: an operator accepts that the former one is lost."""
    Installation.objects.filter(pk=ROW).update(key=audit_chain.key_id())


def _check_home(part: Part) -> str | None:
    if _has_its_database():
        return None
    file = Path(settings.TRAINYARD_HOME) / IDENTITY_FILE
    create_once(file, part.row.identity.encode())
    identity = file.read_text().strip()
    if identity == part.row.identity:
        return None
    return (
        f"The home {file.parent} belongs to installation {identity[:8]}, but the database to installation "
        f"{part.row.identity[:8]}: correct TRAINYARD_HOME or TRAINYARD_DATABASE_URL, or remove {file} if "
        "this home is to be used with the database from now on."
    )


def _check_key(part: Part) -> str | None:
    if not audit_chain.has_key():
        return None
    own = audit_chain.key_id()
    if part.signs and not part.row.key:
        Installation.objects.filter(pk=ROW, key="").update(key=own)
        part.row.refresh_from_db()
    if part.row.key in ("", own):
        return None
    if _has_its_database():
        # The home lost its key, and a new one was made. The audit log shows it, and the installation runs.
        if part.signs:
            log.warning("the secret key of this home was replaced: users must log in again")
            adopt_key()
        return None
    file = settings.TRAINYARD_SECRET_KEY_FILE
    difference = f"The secret key in {file} is {own[:8]}, but that of the database's installation is "
    if not part.signs:
        return f"{difference}{part.row.key[:8]}: remove the file, since a worker needs no key."
    return (
        f"{difference}{part.row.key[:8]}: copy the file from the machine on which the dashboard runs, or, if "
        f"that key is lost, accept the present one by `{program.command_line('audit seal --reason "…"')}`."
    )


def _has_its_database() -> bool:
    """Return whether the database is a file in the home, so that both belong together in any case."""
    name = str(connection.settings_dict["NAME"])
    return connection.vendor == "sqlite" and Path(name).is_relative_to(settings.TRAINYARD_HOME)


CHECKS: tuple[Callable[[Part], str | None], ...] = (_check_home, _check_key)
