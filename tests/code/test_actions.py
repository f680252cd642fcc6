"""Versions that are created at the same time, and their removal."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

from jobs import clock
from jobs.actions.code import code
from jobs.actions.code.code import CheckedFile, StoredCode
from jobs.actions.storage import deletions, purge
from jobs.messages.code import CodeFound
from jobs.models import CodeFile, CodeVersion, Deletion
from jobs.queries.storage import references
from tests.people import People


def stored(people: People, folder: Path, **texts: str) -> StoredCode:
    files = []
    for name, text in texts.items():
        place = folder / name
        place.write_text(text)
        files.append(CheckedFile(f"{name}.py", place, 1))
    return code.store_files(people.project, files, CodeFound())


def test_a_version_that_another_request_created_meanwhile_is_returned(
    people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = stored(people, tmp_path, a="x", b="x")
    first = code.create(people.project, name="net", code=files, by=people.member)
    look, looks = code._existing_version, iter([None])
    # The first look comes before the other request has written its row.
    monkeypatch.setattr(code, "_existing_version", lambda *args: next(looks, look(*args)))
    second = code.create(people.project, name="other", code=files, by=people.owner)
    assert (first.is_new, second.is_new, second.version) == (True, False, first.version)
    assert CodeFile.objects.count() == 2


def test_a_purge_removes_the_rows_and_leaves_the_files_to_the_collection(
    people: People, tmp_path: Path
) -> None:
    version, _ = code.create(
        people.project, name="net", code=stored(people, tmp_path, a="y"), by=people.member
    )
    deletions.delete(version, by=people.member)
    assert not references.unreferenced_artifacts().exists()
    Deletion.objects.update(until=clock.now() - timedelta(seconds=1))
    assert purge.purge_due(deadline=time.monotonic() + 60) == 1
    assert not CodeVersion.everything.exists()
    assert references.unreferenced_artifacts().count() == 1
