"""Backups that would be of no use are refused, with the way on: empty databases, other keys, wrong places."""

import itertools
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from jobs.keys import key_ring
from jobs.keys.secret_keys import FormerKey, SecretKeys
from tests.ops.test_backup import Installation, empty, empty_database, full
from webapp.ops import backup
from webapp.ops.database_copies import copy_sqlite
from webapp.ops.errors import OpsError

__all__ = ["empty", "full"]


def test_a_backup_of_an_empty_database_is_neither_verified_nor_restored(
    full: Installation, empty: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_database(full)
    with monkeypatch.context() as earlier:
        earlier.setattr(backup, "require_installation_in", lambda *_: None)
        saved = full.back_up(tmp_path / "all.tar")
    with pytest.raises(CommandError, match=r"all\.tar is no backup of an installation"):
        call_command("backup", "--verify", str(saved))
    with pytest.raises(OpsError, match=r"all\.tar is no backup of an installation"):
        empty.restore(saved)
    assert not Path(empty.database["NAME"]).exists()


@pytest.fixture
def rotated(full: Installation, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Rotates the secret key as often as given, each time while the database is copied."""

    def rotate(times: int) -> None:
        rotations = iter(range(times))

        def copy_meanwhile(source: Path, target: Path) -> None:
            copy_sqlite(source, target)
            for number in itertools.islice(rotations, 1):
                with closing(full.connect()) as connection:
                    connection.execute("INSERT INTO point VALUES (2)")
                    connection.commit()
                full.secret_key.write_text(f"rotated {number}")

        monkeypatch.setattr(backup, "copy_sqlite", copy_meanwhile)

    return rotate


def test_the_keys_of_a_backup_belong_to_its_copy_of_the_database(
    full: Installation, empty: Installation, tmp_path: Path, rotated: Callable[[int], None]
) -> None:
    rotated(2)
    empty.restore(full.back_up(tmp_path / "all.tar"))
    assert empty.secret_key.read_text() == "rotated 1"
    assert empty.points() == 3


def test_keys_that_change_again_and_again_refuse_the_backup(
    full: Installation, tmp_path: Path, rotated: Callable[[int], None]
) -> None:
    rotated(backup.COPIES)
    with pytest.raises(OpsError, match="keys are being replaced"):
        full.back_up(tmp_path / "all.tar")
    assert not list(tmp_path.glob("*all.tar*"))


@pytest.mark.parametrize("place", ["present", "next", "former"])
def test_a_key_that_is_being_rotated_belongs_to_the_database(
    full: Installation, tmp_path: Path, place: str
) -> None:
    key, other = "a" * 60, "b" * 60
    until = datetime(2030, 1, 1, tzinfo=UTC)
    files = {
        "present": SecretKeys(key, other),
        "next": SecretKeys(other, key),
        "former": SecretKeys(other, former=(FormerKey(key, until),)),
    }
    full.secret_key.write_text(files[place].text())
    name_key(full, key)
    call_command("backup", "--verify", str(full.back_up(tmp_path / "all.tar")))


def test_a_key_of_another_database_is_not_verified(
    full: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.secret_key.write_text("b" * 60)
    name_key(full, "a" * 60)
    with pytest.raises(OpsError, match=r"belongs to the key .* audit seal"):
        full.back_up(tmp_path / "all.tar")
    with monkeypatch.context() as earlier:
        earlier.setattr(backup, "require_key_in", lambda *_: None)
        saved = full.back_up(tmp_path / "all.tar")
    with pytest.raises(CommandError, match=r"The secret key in .*all\.tar is .* belongs to the key"):
        call_command("backup", "--verify", str(saved))


def name_key(installation: Installation, key: str) -> None:
    """Let the database name its key."""
    with closing(installation.connect()) as connection:
        connection.execute("CREATE TABLE jobs_installationsettings (id INTEGER, key TEXT)")
        connection.execute("INSERT INTO jobs_installationsettings VALUES (1, ?)", [key_ring.name_of_key(key)])
        connection.commit()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/all.tar", r"missing is no folder: create it"),
        ("file/all.tar", r"file is no folder"),
        ("folder", r"folder is a folder: name a file in it, such as .*folder/trainyard\.tar"),
    ],
)
def test_a_place_where_no_file_can_be_is_refused_with_its_name(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match=reason):
        call_command("backup", str(tmp_path / name))


@pytest.mark.django_db
def test_a_folder_of_another_user_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere.
    monkeypatch.setattr("webapp.management.commands.backup.os.access", lambda *_: False)
    with pytest.raises(CommandError, match=f"{tmp_path} cannot be written by this user"):
        call_command("backup", str(tmp_path / "all.tar"))
