"""Program and database of different versions refuse each other, before anything is written."""

import re
import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from jobs import clock, program, scheduler
from jobs.actions import own_installation
from jobs.actions.program import record_program
from jobs.errors import ForeignInstallation
from jobs.models import ApiToken, AuditEvent, InstallationSettings, Lease, Reachability
from jobs.queries import compatibility
from jobs.queries.storage import ownership
from tests.people import People
from webapp import health
from webapp.ops import preparation, web_server
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.version_watch import VersionWatch

pytestmark = pytest.mark.django_db

OWN = program.program_version()
NEWER = "0999_something_new"


@pytest.fixture(autouse=True)
def stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the connection, whose transaction the test needs: a start closes it."""
    monkeypatch.setattr(connection, "close", lambda: None)


def upgrade(version: str = "99.1.0") -> None:
    """Change the database as a newer program does."""
    MigrationRecorder(connection).record_applied("jobs", NEWER)
    prepared_by(version)


def prepared_by(version: str) -> None:
    record_program()
    InstallationSettings.objects.update(program=version)


def problem(*, migrates: bool = False) -> str:
    return compatibility.problem(migrates=migrates) or ""


def test_a_database_of_the_same_version_is_used() -> None:
    assert compatibility.problem() is None
    record_program()
    assert compatibility.recorded_program() == OWN
    assert compatibility.problem() is None


@pytest.mark.parametrize("migrates", [True, False])
def test_a_newer_database_is_refused_with_both_versions_and_a_way_back(migrates: bool) -> None:
    upgrade()
    sentence = problem(migrates=migrates)
    for words in (
        "version 99.1.0",
        f"version {OWN}",
        NEWER,
        compatibility.own_schema(),
        "restore FILE --force",
    ):
        assert words in sentence


def test_a_newer_database_that_names_no_version_is_refused_too() -> None:
    upgrade("")
    assert "a newer version of Trainyard" in problem(migrates=True)


def test_an_older_database_is_refused_by_all_but_what_migrates_it() -> None:
    MigrationRecorder(connection).record_unapplied("jobs", compatibility.own_schema())
    prepared_by("0.1.0")
    assert compatibility.problem(migrates=True) is None
    sentence = problem()
    *_, before, _ = sorted(path.stem for path in (program.ROOT / "jobs" / "migrations").glob("0*.py"))
    for words in ("version 0.1.0", f"version {OWN}", before, "web --migrate"):
        assert words in sentence


def test_single_migrations_count_as_the_one_that_replaces_them() -> None:
    MigrationRecorder(connection).record_unapplied("jobs", "0001_squashed_0047_promotions_by_state")
    assert compatibility.problem() is None


def test_a_part_of_another_version_with_the_same_schema_is_refused_with_both_versions() -> None:
    prepared_by("0.0.1")
    sentence = problem()
    assert f"version {OWN}" in sentence
    assert "version 0.0.1" in sentence
    assert "install 0.0.1 here" in sentence


def test_a_patch_goes_back_and_a_release_does_not() -> None:
    major, minor, _ = OWN.split(".")
    prepared_by(f"{major}.{minor}.99")
    assert compatibility.problem(migrates=True) is None
    prepared_by(f"{major}.{int(minor) + 1}.0")
    assert "their schemas are equal" in problem(migrates=True)


def test_a_start_on_a_newer_database_writes_nothing(tmp_path: Path, settings: Any) -> None:
    settings.TRAINYARD_HOME = tmp_path
    settings.STATIC_ROOT = tmp_path / "static"
    upgrade()
    home = Home(tmp_path)
    home.create()
    with pytest.raises(OpsError, match=r"belongs to version 99\.1\.0"):
        preparation.prepare(home, "http://web", lambda line: pytest.fail(line))
    assert InstallationSettings.objects.get().program == "99.1.0"
    assert not ApiToken.objects.exists()
    assert not home.backups.exists()
    assert not home.serving_token_file.exists()


def test_a_start_records_the_version_and_the_owner_of_the_store(tmp_path: Path, settings: Any) -> None:
    settings.TRAINYARD_HOME, settings.TRAINYARD_ARTIFACTS = tmp_path, str(tmp_path / "artifacts")
    settings.STATIC_ROOT = tmp_path / "static"
    home = Home(tmp_path)
    home.create()
    preparation.prepare(home, "http://web", lambda line: pytest.fail(line))
    row = InstallationSettings.objects.get()
    assert row.program == OWN
    assert (tmp_path / "artifacts" / ".installation").read_text() == f"{row.identity}\n"


@pytest.mark.parametrize(
    "command",
    [
        ["token", "ada", "--scopes", "read"],
        ["serving_token", "edge"],
        ["adduser", "eve"],
        ["collect"],
        ["adopt_store"],
        ["single_person", "vision", "on"],
        ["audit", "seal", "--reason", "x"],
    ],
)
def test_commands_that_write_refuse_a_newer_database(people: People, command: list[str]) -> None:
    upgrade()
    tokens = ApiToken.objects.count()
    with pytest.raises(CommandError, match=r"belongs to version 99\.1\.0"):
        call_command(*command)
    assert ApiToken.objects.count() == tokens


def test_a_scheduler_ends_on_a_newer_database_before_it_holds_the_lease() -> None:
    upgrade()
    with pytest.raises(compatibility.Incompatible, match=r"belongs to version 99\.1\.0"):
        scheduler.run(threading.Event())
    assert not Lease.objects.exists()


def test_a_running_scheduler_ends_when_the_database_is_upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "COMPARE_SECONDS", 0.0)
    passes: list[float] = []

    def wait(listener: object, seconds: float) -> None:
        passes.append(seconds)
        if len(passes) == 2:
            upgrade()
        assert len(passes) < 3

    monkeypatch.setattr(scheduler.HintListener, "wait", wait)
    monkeypatch.setattr(scheduler, "hold_lease", lambda _: False)
    with pytest.raises(compatibility.Incompatible):
        scheduler.run(threading.Event())
    assert len(passes) == 2


def test_a_web_server_of_another_version_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PARTS", {"version": health.PARTS["version"]})
    assert Client().get("/readyz").status_code == 200
    prepared_by("0.0.1")
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["missing"]) == (503, ["version"])


def test_a_running_web_server_ends_when_the_database_is_upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[str | None] = []
    monkeypatch.setattr(connections, "close_all", lambda: None)
    answers: list[str | Exception | None] = [None, OperationalError("away"), "another version"]

    def problem() -> str | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(compatibility, "problem", problem)
    watch = VersionWatch(lambda: ends.append(watch.problem), pause=0.0)
    watch.run()
    assert ends == ["another version"]


@pytest.fixture
def stranger(tmp_path: Path, settings: Any) -> Path:
    """Use a home that belongs to another installation than the database."""
    settings.TRAINYARD_HOME = tmp_path
    (tmp_path / own_installation.IDENTITY_FILE).write_text("f" * 32)
    return tmp_path


REFUSAL = r"belongs to installation ffffffff, but the database to installation \w{8}"


@pytest.mark.parametrize("command", [["token", "ada", "--scopes", "read"], ["serving_token", "edge"]])
def test_commands_of_another_installation_sign_nothing(
    people: People, stranger: Path, command: list[str]
) -> None:
    rows, tokens = AuditEvent.objects.count(), ApiToken.objects.count()
    with pytest.raises(CommandError, match=REFUSAL):
        call_command(*command)
    assert (AuditEvent.objects.count(), ApiToken.objects.count()) == (rows, tokens)


def test_a_scheduler_of_another_installation_ends_before_it_writes(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "PRESENCE_SECONDS", 0.0)
    with pytest.raises(ForeignInstallation, match=REFUSAL):
        scheduler.run(threading.Event())
    assert not Lease.objects.exists()
    assert not Reachability.objects.exists()


def test_a_start_with_the_home_of_another_installation_prepares_nothing(
    stranger: Path, settings: Any
) -> None:
    settings.TRAINYARD_ARTIFACTS, settings.STATIC_ROOT = str(stranger / "artifacts"), stranger / "static"
    home = Home(stranger)
    home.create()
    with pytest.raises(OpsError, match=REFUSAL):
        preparation.prepare(home, "http://web", lambda line: pytest.fail(line))
    assert InstallationSettings.objects.get().program == ""
    assert not home.serving_token_file.exists()
    assert not (stranger / "artifacts" / ".installation").exists()


def drop_columns(*names: str) -> None:
    """Let the installation's row have an older schema."""
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"ALTER TABLE {InstallationSettings._meta.db_table} DROP COLUMN {name}")


class Migrated(Exception):
    """The database would be migrated now."""


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the database of an installation have an older schema; return its start."""
    own_installation.ensured_row()
    InstallationSettings.objects.update(key="another key")
    MigrationRecorder(connection).record_unapplied("jobs", compatibility.own_schema())
    monkeypatch.setattr(preparation, "migrate", Mock(side_effect=Migrated))

    def start(home: Path) -> None:
        Home(home).create()
        preparation.prepare(Home(home), "http://web", lambda line: pytest.fail(line))

    return start


def test_a_foreign_home_is_refused_before_an_older_database_is_migrated(older: Any, stranger: Path) -> None:
    # A column of a later version is missing.
    drop_columns("program")
    with pytest.raises(OpsError, match=REFUSAL):
        older(stranger)


def test_a_foreign_key_is_refused_before_an_older_database_is_migrated(
    older: Any, tmp_path: Path, settings: Any
) -> None:
    settings.TRAINYARD_HOME = tmp_path
    drop_columns("program")
    with pytest.raises(OpsError, match="copy the file from the machine on which the dashboard runs"):
        older(tmp_path)
    assert not (tmp_path / own_installation.IDENTITY_FILE).exists()


def test_a_restored_database_that_is_older_than_identities_has_one_in_its_lease(
    older: Any, stranger: Path
) -> None:
    drop_columns("identity", "key", "program")
    Lease.objects.create(name=ownership.RESTORED, holder="e" * 32, until=clock.now())
    with pytest.raises(OpsError, match=r"belongs to installation ffffffff, but the database to .* eeeeeeee"):
        older(stranger)


def test_a_database_that_is_older_than_identities_is_migrated(older: Any, stranger: Path) -> None:
    drop_columns("identity", "key", "program")
    with pytest.raises(Migrated):
        older(stranger)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {InstallationSettings._meta.db_table}")
    with pytest.raises(Migrated):
        older(stranger)


def test_a_web_server_of_another_installation_ends_with_one_sentence(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "close_all", lambda: None)
    with pytest.raises(SystemExit, match=REFUSAL):
        web_server._new_watch(lambda: None)


def test_a_web_server_that_started_without_a_database_compares_itself_when_there_is_one(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "close_all", lambda: None)
    watch = VersionWatch(lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(compatibility, "problem", Mock(side_effect=OperationalError("away")))
        watch.compare()
    assert watch.problem is None
    watch.compare()
    assert re.search(REFUSAL, watch.problem or "")


def test_a_web_server_whose_home_is_away_goes_on_comparing_and_logs_that_now_and_then(
    stranger: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "close_all", lambda: None)
    answers = [PermissionError(13, "denied", "installation.id"), OSError("stale handle"), ValueError("bad")]
    follow = Mock(side_effect=[*answers, None])
    monkeypatch.setattr(own_installation, "follow_key", follow)
    (stranger / own_installation.IDENTITY_FILE).unlink()
    problems = iter([None] * 5)
    monkeypatch.setattr(compatibility, "problem", lambda: next(problems, "another version"))
    ends: list[str | None] = []
    watch = VersionWatch(lambda: ends.append(watch.problem), pause=0.0)
    watch.run()
    assert ends == ["another version"]
    assert follow.call_count == 4
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert "denied: 'installation.id'" in caplog.text


def test_a_web_server_that_cannot_read_its_installation_id_compares_itself_later(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "close_all", lambda: None)
    file = stranger / own_installation.IDENTITY_FILE
    text = file.read_text()
    file.write_bytes(b"\xff")
    watch = VersionWatch(lambda: None)
    watch.compare()
    assert watch.problem is None
    file.write_text(text)
    watch.compare()
    assert re.search(REFUSAL, watch.problem or "")


def test_version_names_program_schema_and_store(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without a database's file there is no installation, whose database would be asked.
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path))
    (tmp_path / "trainyard.sqlite3").touch()
    settings.TRAINYARD_HOME, settings.TRAINYARD_ARTIFACTS = tmp_path, str(tmp_path / "artifacts")
    schema = re.escape(compatibility.own_schema())
    call_command("version")
    assert re.fullmatch(
        rf"program  {OWN}, schema {schema}\nschema   {schema}\n"
        r"store    .*/artifacts, which does not exist yet\n",
        capsys.readouterr().out,
    )
    settings.STATIC_ROOT = tmp_path / "static"
    home = Home(tmp_path)
    home.create()
    preparation.prepare(home, "http://web", lambda _: None)
    call_command("version")
    assert re.fullmatch(
        rf"program  {OWN}, schema {schema}\nschema   {schema}, prepared by version {OWN}\n"
        r"store    .*/artifacts, of this installation \([0-9a-f]{8}\)\n",
        capsys.readouterr().out,
    )
    upgrade()
    call_command("version")
    assert f"schema   {NEWER}, prepared by version 99.1.0" in capsys.readouterr().out
