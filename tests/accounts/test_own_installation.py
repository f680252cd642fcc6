"""A part that belongs to another installation than its database is refused with one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from jobs import audit_chain, program
from jobs.actions import own_installation
from jobs.actions.audit import audit
from jobs.actions.own_installation import require_own_installation
from jobs.actions.people import people
from jobs.errors import ForeignInstallation
from jobs.models import AuditEvent, InstallationSettings, WaitingAuditEvent
from jobs.queries.audit import audit_verification
from webapp.settings import databases, places

OTHER_KEY = "another-secret-key-of-more-than-fifty-characters-0123456789"
pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(settings: Any, tmp_path: Path) -> Callable[..., None]:
    """Go to another machine, with a home and possibly a key of its own, and the same database."""

    def go(name: str, key: str | None = None) -> None:
        home = tmp_path / name
        home.mkdir(exist_ok=True)
        settings.TRAINYARD_HOME = home
        settings.TRAINYARD_SECRET_KEY_FILE = home / "secret.key"
        settings.TRAINYARD_HAS_KEY = key is not None
        # Empty in a real worker; the settings of tests cannot be restored from an empty one.
        settings.SECRET_KEY = key or "a key with which a row must never be signed"

    return go


def test_parts_with_the_same_key_and_workers_without_one_start(
    machine: Callable[..., None], settings: Any
) -> None:
    key = settings.SECRET_KEY
    for _ in range(2):
        machine("worker")
        require_own_installation(signs=False)
        for name in ("web-1", "web-2"):
            machine(name, key)
            require_own_installation(signs=True)
    assert InstallationSettings.objects.get().key == audit_chain.key_id()


def test_a_web_server_with_another_key_is_refused_until_an_operator_accepts_the_key(
    machine: Callable[..., None], settings: Any
) -> None:
    machine("web-1", settings.SECRET_KEY)
    people.add_person("olga", by=None)
    require_own_installation(signs=True)
    machine("web-2", OTHER_KEY)
    with pytest.raises(ForeignInstallation, match="copy the file from the machine on which the dashboard"):
        require_own_installation(signs=True)
    audit.seal_chain("the first machine burnt", by=None)
    require_own_installation(signs=True)


def test_a_worker_with_another_key_is_told_to_remove_it(machine: Callable[..., None], settings: Any) -> None:
    machine("web-1", settings.SECRET_KEY)
    require_own_installation(signs=True)
    machine("worker", OTHER_KEY)
    with pytest.raises(ForeignInstallation, match="remove the file, since a worker needs no key"):
        require_own_installation(signs=False)


def test_a_worker_does_not_name_the_key_of_a_new_installation(
    machine: Callable[..., None], settings: Any
) -> None:
    key = settings.SECRET_KEY
    machine("worker", OTHER_KEY)
    require_own_installation(signs=False)
    machine("web-1", key)
    require_own_installation(signs=True)
    assert InstallationSettings.objects.get().key == audit_chain.key_id()


def test_the_home_of_another_installation_is_refused(machine: Callable[..., None]) -> None:
    machine("worker")
    require_own_installation(signs=False)
    InstallationSettings.objects.update(identity="f" * 32)
    with pytest.raises(ForeignInstallation, match=r"belongs to installation \w{8}, but the database to"):
        require_own_installation(signs=False)
    machine("another worker")
    require_own_installation(signs=False)


def test_a_home_that_has_its_database_may_get_a_new_key(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_installation, "_has_its_database", lambda: True)
    require_own_installation(signs=True)
    settings.SECRET_KEY = OTHER_KEY
    require_own_installation(signs=True)
    assert InstallationSettings.objects.get().key == audit_chain.key_id()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL's database is in no home")
def test_a_database_in_the_home_belongs_to_it_however_its_address_is_written(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for home, address in (
        (tmp_path, f"sqlite:///{tmp_path}/trainyard.sqlite3"),
        (tmp_path, f"sqlite://{tmp_path}/trainyard.sqlite3"),
        (tmp_path / "link", f"sqlite:///{tmp_path}/trainyard.sqlite3"),
    ):
        settings.TRAINYARD_HOME = home
        monkeypatch.setenv("TRAINYARD_DATABASE_URL", address)
        with monkeypatch.context() as patch:
            patch.setitem(connection.settings_dict, "NAME", databases.database(home)["NAME"])
            require_own_installation(signs=False)
        assert not (tmp_path / own_installation.IDENTITY_FILE).exists()


def test_a_part_that_signs_nothing_makes_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINYARD_SECRET_KEY_FILE", raising=False)
    monkeypatch.setenv(program.KEYLESS_VARIABLE, "1")
    assert (places.secret_keys(tmp_path).present, list(tmp_path.iterdir())) == ("", [])
    monkeypatch.delenv(program.KEYLESS_VARIABLE)
    key = places.secret_keys(tmp_path).present
    monkeypatch.setenv(program.KEYLESS_VARIABLE, "1")
    assert places.secret_keys(tmp_path).present == key != ""


def test_rows_from_a_worker_without_a_key_are_signed_where_the_key_is(
    machine: Callable[..., None], settings: Any
) -> None:
    key = settings.SECRET_KEY
    olga = people.add_person("olga", by=None)
    project = people.create_project("first", name="First", by=olga)
    machine("worker")
    with transaction.atomic():
        audit.record("version.validated", "version:a/1", by=None, project=project, packages=("a", "b"))
        audit.record("job.test", "job:1", by=olga)
    waiting = WaitingAuditEvent.objects.order_by("pk").first()
    assert waiting is not None
    assert audit.append_waiting() == 0
    machine("web", key)
    with transaction.atomic():
        audit.record("person.test", "user:1", by=olga)
    assert audit_verification.verify_chain().notes == (
        "2 more rows, from workers without the key, wait for the scheduler.",
    )
    assert audit.append_waiting() == 2
    assert audit.append_waiting() == 0
    assert audit_verification.verify_chain().holds
    rows = list(AuditEvent.objects.order_by("-number")[:3])
    assert [row.action for row in rows] == ["job.test", "version.validated", "person.test"]
    assert (rows[1].time, rows[1].project, rows[1].actor) == (waiting.time, project, None)
    assert rows[1].detail == {"packages": ["a", "b"], "project": "first"}


def test_a_row_that_waits_is_undone_with_its_change(machine: Callable[..., None]) -> None:
    machine("worker")
    with pytest.raises(RuntimeError), transaction.atomic():
        audit.record("job.test", "job:1", by=None)
        raise RuntimeError
    assert not WaitingAuditEvent.objects.exists()
