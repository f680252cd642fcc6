"""Web servers serve complete copies of the static files, each those of its own program."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders

from webapp.ops import static_files
from webapp.ops.errors import OpsError


@pytest.fixture
def source(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Return the folder of the only source files."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "page.css").write_text("body { color: red; }")
    settings.STATICFILES_DIRS = [folder]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.WHITENOISE_USE_FINDERS = False
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STATIC_ROOT.mkdir()
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]
    yield folder
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]
    end_servers()


def end_servers() -> None:
    """Release the locks that the kernel releases when servers end."""
    while static_files._own_locks:
        static_files._own_locks.pop().close()


def start_server(settings: Any, tmp_path: Path) -> Path:
    """Return the folder from which a server that starts now sends its files."""
    settings.STATIC_ROOT = tmp_path / "static"
    static_files.use()
    return Path(settings.STATIC_ROOT)


def sheets(folder: Path) -> set[str]:
    return {path.read_text() for path in folder.glob("page.*.css")}


def test_a_second_server_uses_the_files_of_the_first(source: Path, settings: Any, tmp_path: Path) -> None:
    first = start_server(settings, tmp_path)
    inode = (first / "staticfiles.json").stat().st_ino
    second = start_server(settings, tmp_path)
    assert second == first and (second / "staticfiles.json").stat().st_ino == inode
    assert sheets(first) == {"body { color: red; }"}


def test_files_of_a_running_server_stay_until_it_ends(source: Path, settings: Any, tmp_path: Path) -> None:
    old = start_server(settings, tmp_path)
    (source / "page.css").write_text("body { color: blue; }")
    new = start_server(settings, tmp_path)
    assert (sheets(old), sheets(new)) == ({"body { color: red; }"}, {"body { color: blue; }"})
    end_servers()
    assert start_server(settings, tmp_path) == new
    assert not old.exists()


def test_what_a_killed_server_left_is_not_served(source: Path, settings: Any, tmp_path: Path) -> None:
    half = tmp_path / "static" / static_files.UNFINISHED
    half.mkdir()
    (half / "page.css").write_text("body { col")
    # Newer than its source: `collectstatic` would keep it.
    later = (source / "page.css").stat().st_mtime + 60
    os.utime(half / "page.css", (later, later))
    folder = start_server(settings, tmp_path)
    assert sheets(folder) == {"body { color: red; }"}
    assert (folder / "page.css").read_text() == "body { color: red; }"
    assert not half.exists()


def test_files_whose_removal_was_interrupted_are_built_again(
    source: Path, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_server(settings, tmp_path)
    end_servers()
    (source / "page.css").write_text("body { color: blue; }")

    def remove_one(folder: Path, **_: object) -> None:
        for path in list(folder.glob("page.*.css")):
            path.unlink()

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", remove_one)
        start_server(settings, tmp_path)
    end_servers()
    (source / "page.css").write_text("body { color: red; }")
    assert sheets(start_server(settings, tmp_path)) == {"body { color: red; }"}


def test_a_folder_that_cannot_be_written_is_named(
    source: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(static_files, "call_command", fail)
    with pytest.raises(OpsError, match=r"static: No space left on device\.$"):
        static_files.build()


def test_files_of_earlier_versions_of_the_program_are_removed(
    source: Path, settings: Any, tmp_path: Path
) -> None:
    (tmp_path / "static" / "css").mkdir()
    (tmp_path / "static" / "css" / "app.0123.css").write_text("")
    (tmp_path / "static" / "staticfiles.json").write_text("{}")
    folder = start_server(settings, tmp_path)
    assert {path.name for path in (tmp_path / "static").iterdir()} == {folder.name, static_files.LOCK}
