"""Files that runners leave: links are never followed."""

import os
from pathlib import Path

import pytest

from jobs.runner_files import open_regular, remove_folder
from jobs.store import LocalStore, StoredFile


def test_a_file_below_a_folder_is_opened(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "report.txt").write_text("fine")
    with os.fdopen(open_regular(tmp_path, "sub/report.txt", owner=os.geteuid())) as file:
        assert file.read() == "fine"


def test_links_pipes_folders_and_files_of_other_owners_are_not_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret.key"
    secret.write_text("secret")
    work = tmp_path / "work"
    (work / "folder").mkdir(parents=True)
    (work / "link").symlink_to(secret)
    (work / "linked").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    os.link(secret, work / "other")
    for name in ("link", "linked/secret.key", "pipe", "folder", "missing"):
        with pytest.raises(OSError, match=r"link|directory|regular"):
            open_regular(work, name)
    with pytest.raises(PermissionError, match="not a regular file of the run"):
        open_regular(work, "other", owner=os.geteuid() + 1)
    for name in ("../secret.key", str(secret), "", "folder/../../secret.key"):
        with pytest.raises(ValueError, match="not a path below"):
            open_regular(work, name)


def test_a_folder_behind_a_link_is_not_deleted(tmp_path: Path) -> None:
    precious = tmp_path / "home" / "run"
    precious.mkdir(parents=True)
    root = tmp_path / "checkpoints"
    (root / "job-1" / "trial-1").mkdir(parents=True)
    (root / "job-1" / "elsewhere").symlink_to(tmp_path / "home")
    remove_folder(root, "job-1/elsewhere/run")
    remove_folder(root, "../home/run")
    remove_folder(root, "job-1/elsewhere")
    assert precious.is_dir()
    remove_folder(root, "job-1/trial-1")
    assert not (root / "job-1" / "trial-1").exists()


def test_a_file_that_changes_while_it_is_stored_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file = LocalStore(tmp_path / "store"), tmp_path / "artifact"
    file.write_text("first")
    copy = LocalStore._copy

    def changed(self: LocalStore, path: Path, place: Path, stored: StoredFile) -> None:
        file.write_text("second")
        copy(self, path, place, stored)

    monkeypatch.setattr(LocalStore, "_copy", changed)
    with pytest.raises(OSError, match="changed while it was stored"):
        store.put(file)
    assert list(store.files()) == []
    assert not list((tmp_path / "store").glob("*/.put-*"))
