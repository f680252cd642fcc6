"""Prepares an installation before the parts start: backs up and migrates the database, writes secrets."""

import fcntl
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from jobs.actions import own_installation
from jobs.actions.people.people import add_person, create_login_link
from jobs.actions.people.service_tokens import dashboard_token, own_credential
from jobs.actions.program import record_program
from jobs.actions.storage import ownership
from jobs.messages.sandbox import INSTALL_BUBBLEWRAP, Level
from jobs.queries import compatibility
from jobs.queries.people.people import people_accounts
from jobs.queries.registry.releases import has_releases
from jobs.signing import private_key_file, public_key_file
from webapp.ops import new_database, static_files
from webapp.ops.database import upgrade_copies
from webapp.ops.errors import OpsError
from webapp.ops.home import Home, write_private

FIRST_ADMINISTRATOR = "admin"


def database_error() -> str | None:
    """Try to connect to the database; return the error, or None."""
    try:
        if connection.vendor == "postgresql":
            # Not through the pool, which waits 30 s and hides the reason.
            parameters = {"connect_timeout": 5, **connection.get_connection_params()}
            with connection.wrap_database_errors:
                psycopg.connect(**parameters).close()
        else:
            connection.ensure_connection()
    except OperationalError as error:
        return str(error).splitlines()[0]
    finally:
        # The supervisor calls this in a thread, and Django keeps one connection for each thread.
        connection.close()
    return None


def prepare(home: Home, web_url: str, report: Callable[[str], None]) -> list[str]:
    """Migrate the database and write the prediction server's secrets.

    Returns:
        Lines for the operator's terminal only: the first administrator's login link on a new home.

    Raises:
        OpsError: the database is newer than this program, or older and cannot be copied; a restore was
            interrupted; or the home belongs to another installation than the database.
    """
    try:
        compatibility.require(migrates=True)
        _refuse(own_installation.problem_before_migration())
        migrate(home, report)
        # Again: only now it has an identity in any case.
        _refuse(own_installation.problem(signs=True))
        record_program()
        _settle_owner(report)
        static_files.build()
        keep_tokens(home)
        _ensure_release_key(report)
        return _login_lines(web_url)
    except compatibility.Incompatible as error:
        raise OpsError(str(error)) from error
    finally:
        connection.close()


def _refuse(sentence: str | None) -> None:
    if sentence is not None:
        raise OpsError(sentence)


def _ensure_release_key(report: Callable[[str], None]) -> None:
    """Create the key pair that signs releases; the prediction server reads the file at its start."""
    is_new = not private_key_file().exists()
    public = public_key_file()
    if is_new and has_releases():
        report(
            f"A new key for releases was made, {private_key_file()}, although there are releases with "
            "another one. If another web server has that key, copy its release.key here instead; else "
            f"prediction servers need {public}."
        )


def keep_tokens(home: Home) -> None:
    """Make the tokens of this home's own servers, unless it has valid ones: others may have copied them."""
    # One at a time: two web servers of one home may start together.
    with (home.run / "tokens.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _keep(home.serving_token_file, lambda current: own_credential(current, socket.gethostname()))
        _keep(home.prediction_token_file, dashboard_token)


def keep_dashboard_token(home: Home) -> None:
    """Make the token with which this home's web server asks prediction servers, unless it has a valid one."""
    home.create()
    with (home.run / "tokens.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _keep(home.prediction_token_file, dashboard_token)


def _keep(path: Path, valid_token: Callable[[str], str]) -> None:
    try:
        current = path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        current = ""
    token = valid_token(current)
    if token != current:
        write_private(path, token + "\n")


def _settle_owner(report: Callable[[str], None]) -> None:
    """Give the artifact store its owner. One that does not answer is no reason not to start."""
    try:
        sentence = ownership.settle()
    except OSError as error:
        sentence = f"It is not known whose the artifact store is: {error}"
    if sentence is not None:
        report(sentence)


def sandbox_hint(environment: Mapping[str, str]) -> str | None:
    """Return how this machine gets the strongest sandbox for users' code; None if it needs no advice."""
    levels = environment.get("TRAINYARD_SANDBOX_LEVELS") or Level.BUBBLEWRAP
    if sys.platform != "linux" or Level.BUBBLEWRAP not in levels or shutil.which("bwrap") is not None:
        return None
    return f"For the strongest sandbox of code of users, {INSTALL_BUBBLEWRAP}, and start again."


def migrate(home: Home, report: Callable[[str], None]) -> None:
    """Create a new database's tables, or apply pending migrations after the database was copied."""
    if new_database.is_empty():
        report("Creating the database.")
        new_database.create()
        return
    executor = MigrationExecutor(connection)
    # Records migrations that replace the applied ones.
    executor.check_replacements()
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return
    if applied := executor.loader.applied_migrations:
        copied = upgrade_copies.make(
            home,
            connection.settings_dict,
            applied,
            may_go_without=settings.TRAINYARD_UPGRADE_WITHOUT_COPY,
        )
        report(f"The database is older than this program; {copied}.")
    report(f"Migrating the database ({len(plan)} to apply).")
    call_command("migrate", verbosity=0, interactive=False)
    upgrade_copies.note_end(home)


def _login_lines(web_url: str) -> list[str]:
    """Return a login link until the first login: an unused link may be lost or expired."""
    # A demo creates people of its own and prints their links.
    if settings.TRAINYARD_DEMO:
        return []
    people = people_accounts().filter(is_active=True)
    if people.exclude(last_login=None).exists():
        return []
    first = people.filter(is_superuser=True).order_by("pk").first()
    # Not created again if the first start ended before the link was used.
    person = first or add_person(FIRST_ADMINISTRATOR, by=None, admin=True)
    link = create_login_link(person, by=None)
    where = settings.TRAINYARD_PUBLIC_URL or web_url
    return [f"No user has logged in yet. Open this link once to become the administrator: {where}{link}"]
