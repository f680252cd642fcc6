"""How the parts connect to PostgreSQL."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.messages.lease import LEASE_SECONDS
from webapp.ops import database_pool
from webapp.settings import databases


def settings_of(monkeypatch: pytest.MonkeyPatch, url: str) -> dict[str, object]:
    monkeypatch.setenv("TRAINYARD_DATABASE_URL", url)
    return databases.database(Path("/unused"))


def test_no_part_waits_long_for_a_server_that_became_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, "postgresql://ty@db:5433/ty?sslmode=require&connect_timeout=9")
    assert settings["OPTIONS"] == {**databases.SILENCE, "sslmode": "require", "connect_timeout": "9"}
    assert (settings["HOST"], settings["PORT"]) == ("db", "5433")


def test_the_server_ends_the_transactions_of_a_machine_that_vanished_before_a_lease_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = settings_of(monkeypatch, "postgresql://ty@db/ty")["OPTIONS"]
    assert isinstance(options, dict)
    wanted = dict(word.split("=") for word in options["options"].split() if word != "-c")
    idle, interval, count = (int(wanted[f"tcp_keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert idle + interval * count < LEASE_SECONDS
    assert int(wanted["tcp_user_timeout"]) < LEASE_SECONDS * 1000
    own = settings_of(monkeypatch, "postgresql://ty@db/ty?options=-c%20lock_timeout%3D5s")["OPTIONS"]
    assert own == {**databases.SILENCE, "options": "-c lock_timeout=5s"}


def test_the_folder_of_a_socket_is_no_option_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, "postgresql://ty@/ty?host=/run/postgresql")
    assert (settings["HOST"], settings["OPTIONS"]) == ("/run/postgresql", databases.SILENCE)


def test_the_web_server_alone_has_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, "postgresql://ty@db/ty")
    assert "pool" not in str(settings)
    monkeypatch.setattr(database_pool, "connections", SimpleNamespace(settings={"default": settings}))
    database_pool.use_pool()
    assert settings["OPTIONS"] == {**databases.SILENCE, "pool": database_pool.POOL}
    assert settings["CONN_HEALTH_CHECKS"] is True


def test_sqlite_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = settings_of(monkeypatch, f"sqlite://{tmp_path}/db.sqlite3")
    before = str(settings)
    monkeypatch.setattr(database_pool, "connections", SimpleNamespace(settings={"default": settings}))
    database_pool.use_pool()
    assert str(settings) == before
