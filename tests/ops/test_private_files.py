"""No other user can read an installation's files or prepare a folder for its sockets."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobs import private_files, signing
from jobs.private_files import NotPrivate
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.settings import databases, places
from workers.confinement.isolation import acl
from workers.node.node_folder import NodeFolder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def open_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual_umask: None) -> Path:
    """A home that all users can read, as an administrator's `mkdir` leaves it."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    for name in ("trainyard.sqlite3", "trainyard.sqlite3-wal", "trainyard.sqlite3-shm", "secret.key"):
        (home / name).write_text("x" * 60)
    (home / "backups").mkdir()
    (home / "elsewhere").symlink_to("/etc/passwd")
    monkeypatch.setenv("TRAINYARD_HOME", str(home))
    return home


def test_a_home_that_others_can_read_is_closed_at_the_start(
    open_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    places.home()
    files = [path for path in open_home.iterdir() if path.is_file() and not path.is_symlink()]
    assert {mode(path) for path in files} == {0o600}
    assert (mode(open_home), mode(open_home / "backups")) == (0o700, 0o700)
    assert f"Other users had permissions for {open_home}: they were removed" in caplog.text
    caplog.clear()
    places.home()
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("mode_of_home", "names", "refusal"),
    [
        (0o1777, (), "is a folder for all users: name a folder of its own below it"),
        (0o1777, ("secret.key",), "is a folder for all users"),
        (0o1777, ("notes.txt",), "is a folder for all users"),
        (0o755, ("notes.txt",), "no home of Trainyard: it has other content, such as 'notes.txt'"),
    ],
)
def test_a_folder_that_is_not_of_this_installation_alone_is_left_open_and_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode_of_home: int,
    names: tuple[str, ...],
    refusal: str,
) -> None:
    home = tmp_path / "shared"
    home.mkdir()
    for name in names:
        (home / name).write_text("")
    home.chmod(mode_of_home)
    monkeypatch.setenv("TRAINYARD_HOME", str(home))
    with pytest.raises(ImproperlyConfigured, match=refusal):
        places.home()
    assert mode(home) == mode_of_home
    assert {path.name for path in home.iterdir()} == set(names)


def test_files_that_were_in_a_folder_before_it_became_a_home_keep_their_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "run.sh").write_text("")
    (home / "run.sh").chmod(0o755)
    monkeypatch.setenv("TRAINYARD_HOME", str(home))
    places.home()
    assert mode(home / "run.sh") == 0o755


def test_every_process_with_the_settings_creates_private_files(open_home: Path) -> None:
    places.home()
    (open_home / "new").write_text("")
    (open_home / "folder").mkdir()
    assert (mode(open_home / "new"), mode(open_home / "folder")) == (0o600, 0o700)


def test_a_home_of_another_user_is_refused(open_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ImproperlyConfigured, match="belongs to the user with the id"):
        places.home()


def test_a_database_key_and_artifacts_outside_the_home_are_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual_umask: None
) -> None:
    database, key, artifacts = tmp_path / "db.sqlite3", tmp_path / "key", tmp_path / "artifacts"
    for path in (database, tmp_path / "db.sqlite3-wal"):
        path.touch()
    key.write_text("k" * 60)
    artifacts.mkdir()
    monkeypatch.setenv("TRAINYARD_DATABASE_URL", f"sqlite://{database}")
    monkeypatch.setenv("TRAINYARD_SECRET_KEY_FILE", str(key))
    monkeypatch.setenv("TRAINYARD_ARTIFACTS", str(artifacts))
    databases.database(tmp_path), places.secret_keys(tmp_path), places.artifacts(tmp_path)
    assert {mode(path) for path in tmp_path.iterdir() if path.is_file()} == {0o600}
    assert mode(artifacts) == 0o700


def test_the_database_is_private_with_its_log(open_home: Path) -> None:
    """A real process, because this one has its database already."""
    (open_home / "trainyard.sqlite3-wal").unlink()
    (open_home / "trainyard.sqlite3-shm").unlink()
    (open_home / "trainyard.sqlite3").unlink()
    program = (
        "import django; django.setup()\n"
        "from django.db import connection\n"
        "with connection.cursor() as cursor:\n"
        "    cursor.execute('CREATE TABLE t (a)')\n"
        "    import os\n"
        "    for entry in os.scandir(os.environ['TRAINYARD_HOME']):\n"
        "        print(entry.name, oct(entry.stat(follow_symlinks=False).st_mode)[-3:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
            "TRAINYARD_HOME": str(open_home),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    modes = dict(line.split() for line in done.stdout.splitlines())
    assert {modes[f"trainyard.sqlite3{suffix}"] for suffix in ("", "-wal", "-shm")} == {"600"}


@pytest.fixture
def shared_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files in which another user prepares a socket's folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def prepare(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "a link":
        (folder.parent / "target").mkdir(mode=0o700)
        folder.symlink_to(folder.parent / "target")
    elif kind == "open to all":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "a file":
        folder.touch()
    else:
        folder.mkdir(mode=0o700)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


@pytest.mark.parametrize("kind", ["a link", "open to all", "a file", "of another user"])
def test_sockets_are_never_put_into_a_folder_that_another_user_prepared(
    shared_tmp: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(shared_tmp / ("a" * 120))
    prepare(home.broker_socket.parent, kind, monkeypatch)
    with pytest.raises(OpsError, match=str(home.broker_socket.parent)):
        home.create()
    monkeypatch.delenv("TRAINYARD_REDIS_URL", raising=False)
    with pytest.raises(ImproperlyConfigured, match=str(home.broker_socket.parent)):
        places.redis_url(home.root)


def test_the_keys_of_a_new_home_are_private_from_the_start(
    tmp_path: Path, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.TRAINYARD_HOME = tmp_path
    signing.public_key_file()
    private_files.make_home_private(tmp_path)
    assert not caplog.messages


def test_a_node_refuses_such_a_folder_too(shared_tmp: Path) -> None:
    node = NodeFolder.claim(shared_tmp / ("x" * 100), "node")
    folder = node.socket.parent
    folder.rmdir()
    folder.symlink_to(shared_tmp)
    with pytest.raises(NotPrivate, match="no link"):
        _ = node.socket


def test_files_that_root_provides_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key"
    key.touch(mode=0o644)
    facts = os.stat_result((0o100444, 0, 0, 1, 0, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda _: facts)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    private_files.make_file_private(key)


def test_a_folder_that_runners_enter_stays_open_to_them_and_to_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text("")
    folder = tmp_path / "compile-cache"
    folder.mkdir()
    acl.grant(folder, acl.user(60600), acl.SEARCH)
    folder.chmod(folder.stat().st_mode | 0o007)
    private_files.make_home_private(tmp_path)
    assert mode(folder) == 0o710
    assert acl.rights(folder)[acl.user(60600)] == acl.SEARCH
