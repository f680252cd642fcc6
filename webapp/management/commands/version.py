from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from jobs import program
from jobs.logs import absent_installation
from jobs.queries import compatibility
from jobs.queries.storage import ownership
from jobs.store import store
from webapp.ops.preparation import database_error


class Command(BaseCommand):
    help = "Prints the versions of the program and of the database's schema, and whose the artifact store is."
    requires_system_checks: list[str] = []

    def handle(self, **_: Any) -> None:
        self.stdout.write(f"program  {program.program_version()}, schema {compatibility.own_schema()}")
        if (absent := absent_installation.problem("version")) is not None:
            # A connection would make the database.
            self.stdout.write(f"store    {settings.TRAINYARD_ARTIFACTS}, {_owner(reachable=False)}")
            self.stdout.write(absent)
            return
        error = database_error()
        self.stdout.write(f"schema   {f'unknown: {error}' if error else _schema()}")
        self.stdout.write(f"store    {settings.TRAINYARD_ARTIFACTS}, {_owner(reachable=error is None)}")
        if error is None and (sentence := compatibility.problem()) is not None:
            self.stdout.write(sentence)


def _schema() -> str:
    """Describe the database. It is not created."""
    if not (name := compatibility.database_schema()):
        return "none: the database is empty"
    prepared = compatibility.recorded_program()
    return f"{name}, prepared by version {prepared}" if prepared else name


def _owner(*, reachable: bool) -> str:
    """Describe whose the store is."""
    location = str(settings.TRAINYARD_ARTIFACTS)
    if "://" not in location and not Path(location).is_dir():
        return "which does not exist yet"
    try:
        owner = store().owner()
        if owner is None:
            return "of no installation yet"
        if reachable and compatibility.recorded_program() and ownership.identity().text == owner:
            return f"of this installation ({owner[:8]})"
    except (OSError, DatabaseError) as error:
        return f"which cannot be read: {error}"
    return f"of another installation ({owner[:8]})" if reachable else f"of the installation {owner[:8]}"
