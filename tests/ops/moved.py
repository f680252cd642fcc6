"""An installation whose database is moved, with rows of every type of column."""

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from jobs.actions.audit import audit
from jobs.actions.own_installation import ensured_row
from jobs.actions.people import tokens
from jobs.actions.program import record_program
from jobs.models import Session, User
from jobs.queries.audit import audit_verification
from tests.people import People, make_people
from webapp.ops.home import Home
from webapp.ops.moves.move import Move, move_database
from webapp.ops.moves.places import as_default, opened
from webapp.ops.moves.tables import Checksum, all_tables
from webapp.settings import databases

LARGE = 2**62
"""More than a float holds exactly."""
DETAILS: dict[str, Any] = {
    "text": "Straße, 東京 \U0001f686",
    "numbers": [1, 1.0, 0.1, 1e20, -1e-12, LARGE, True, None],
    "b": {"z": 1, "a": [{}, []]},
    "1": 1,
}
MICROSECONDS = dt.datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=dt.UTC)


class Installation:
    """A home with a SQLite database that was prepared."""

    def __init__(self, root: Path, tables: Path) -> None:
        self.home = Home(root)
        self.home.create()
        self.file = root / "trainyard.sqlite3"
        shutil.copy(tables, self.file)
        self.database: dict[str, Any] = databases.sqlite(self.file)
        self.lines: list[str] = []
        with opened(self.database) as wrapper, as_default(wrapper):
            ensured_row()
            record_program()
            self.people = fill()

    def move(self, target: dict[str, Any]) -> Move:
        return move_database(self.home, self.database, target, self.lines.append)


def fill() -> People:
    """Write rows to the default database."""
    people = make_people()
    with transaction.atomic():
        for number in range(3):
            audit.record("test.row", people.project, by=people.owner, project=people.project, number=number)
        audit.record("test.detail", "x", by=None, detail=DETAILS)
    tokens.create(people.member, by=people.member, scopes=["read", "write"], name="CI")
    # Ids of rows that are gone are not given again.
    lost, _ = tokens.create(people.member, by=people.member, scopes=["read"])
    lost.delete()
    User.objects.filter(pk=people.viewer.pk).update(date_joined=MICROSECONDS, is_active=False)
    User.objects.filter(pk=people.owner.pk).update(date_joined=MICROSECONDS.replace(microsecond=0))
    Session.objects.create(session_key="k" * 64, session_data="data", expire_date=MICROSECONDS)
    return people


def checksums(database: dict[str, Any]) -> dict[str, Checksum]:
    """Read all tables of a database."""
    found = {}
    with opened(database) as wrapper:
        for table in all_tables():
            found[table.name] = checksum = Checksum()
            for row in table.rows(wrapper):
                checksum.add(table.comparable(row))
    return found


def state_of_log(database: dict[str, Any]) -> str:
    with opened(database) as wrapper, as_default(wrapper):
        return audit_verification.verify_chain().message


def next_token_id(database: dict[str, Any]) -> int:
    """Return the id of a new token, which is not kept."""
    with opened(database) as wrapper, as_default(wrapper), transaction.atomic():
        person = User.objects.get(username="member")
        token, _ = tokens.create(person, by=person, scopes=["read"])
        transaction.set_rollback(True)
        return token.pk


def table_names(database: dict[str, Any]) -> set[str]:
    with opened(database) as wrapper, as_default(wrapper):
        return set(connection.introspection.table_names())
