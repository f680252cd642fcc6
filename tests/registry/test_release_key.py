"""One key signs the releases of an installation, on whichever machine its web servers run."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connection

from jobs import signing
from webapp.management.commands import web
from webapp.ops import preparation


@pytest.fixture
def on_postgres(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Path:
    """Return a new home of an installation with PostgreSQL."""
    settings.TRAINYARD_HOME = tmp_path
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path))
    monkeypatch.setenv("TRAINYARD_DATABASE_URL", "postgres://localhost/trainyard")
    monkeypatch.setattr(connection, "vendor", "postgresql")
    return tmp_path


def test_a_further_web_server_without_the_key_is_refused_and_makes_none(on_postgres: Path) -> None:
    with pytest.raises(CommandError, match=r"copy release\.key from the home of the first web server"):
        web.Command().handle(host="127.0.0.1", port=0, migrate=False)
    assert not (on_postgres / "release.key").exists()


def test_with_a_copy_of_the_key_it_starts_and_signs_as_the_first(
    on_postgres: Path, settings: Any, tmp_path: Path
) -> None:
    first = signing.key_id()
    settings.TRAINYARD_HOME = another = tmp_path / "another"
    another.mkdir()
    (another / "release.key").write_bytes((on_postgres / "release.key").read_bytes())
    (another / "release.key").chmod(0o600)
    assert signing.missing_key() is None
    assert signing.key_id() == first


def test_a_new_key_beside_releases_with_another_one_is_told(
    on_postgres: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = [False]
    monkeypatch.setattr(preparation, "has_releases", lambda: exists[0])
    lines: list[str] = []
    preparation._ensure_release_key(lines.append)
    assert lines == []
    (on_postgres / "release.key").unlink()
    (on_postgres / "release.pub").unlink()
    exists[0] = True
    preparation._ensure_release_key(lines.append)
    assert len(lines) == 1
    assert "copy its release.key here instead" in lines[0]
    preparation._ensure_release_key(lines.append)
    assert len(lines) == 1


def test_a_database_in_the_home_needs_no_copy(settings: Any, tmp_path: Path) -> None:
    settings.TRAINYARD_HOME = tmp_path
    if connection.vendor == "sqlite":
        assert signing.missing_key() is None
