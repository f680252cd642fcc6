"""Checkpoints are copied while a run continues, and before another worker can be given its work."""

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from jobs.errors import NotOwned
from jobs.messages.events import CheckpointCommitted, Log
from jobs.store import ObjectStore
from jobs.store.checkpoint_copies import CheckpointCopies
from tests.supervise.conftest import Bench, until
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.checkpoints import archive
from workers.supervise.checkpoints.channel import CopyChannel


@pytest.fixture
def copies(bench: Bench, tmp_path: Path) -> CheckpointCopies:
    """The copies of a store that the bench's node uses; its folder of checkpoints is its own."""
    store = ObjectStore(f"memory://{tmp_path}", tmp_path / "cache")
    assert store.checkpoint_copies is not None
    channel = CopyChannel(store.checkpoint_copies, bench.node.checkpoints)
    timing = replace(bench.node.timing, upload=0.0, upload_grace=2.0)
    bench.node = replace(bench.node, copies=channel, timing=timing)
    return store.checkpoint_copies


def committed(bench: Bench) -> list[CheckpointCommitted]:
    return [e for e in bench.repository.events.get(1, []) if isinstance(e, CheckpointCommitted)]


def names(copies: CheckpointCopies) -> list[str]:
    return sorted(entry.folder for entry in copies.entries())


async def test_the_newest_checkpoint_is_copied_while_the_run_goes_on(
    bench: Bench, copies: CheckpointCopies, tmp_path: Path
) -> None:
    run = bench.start(["complete_checkpoint", 5], ["hold"])
    await until(lambda: bench.repository.copied)
    [event] = committed(bench)
    assert bench.repository.copied == names(copies) == ["job-1/0/0000000005-1"]
    copies.get(event.folder, tmp_path / "copy")
    archive.unpack(tmp_path / "copy", tmp_path / "there", event.folder, event.manifest)
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()


async def test_a_run_that_yields_has_copied_its_last_checkpoint_before_its_end_is_written(
    bench: Bench, copies: CheckpointCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    finish = bench.repository.finish

    async def note(attempt: int, ending: AttemptEnd) -> None:
        seen.append(names(copies))
        await finish(attempt, ending)

    monkeypatch.setattr(bench.repository, "finish", note)
    bench.with_timing(upload=60.0)
    run = bench.start(*[["complete_checkpoint", step] for step in (1, 2, 3)], ["hold"])
    await until(lambda: len(committed(bench)) == 3)
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()
    assert seen[0][-1] == "job-1/0/0000000003-1"


async def test_an_upload_that_is_under_way_when_a_run_ends_is_completed(
    bench: Bench, copies: CheckpointCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, put = threading.Event(), copies.put

    def slowly(folder: str, file: Path) -> None:
        began.set()
        time.sleep(0.3)
        put(folder, file)

    monkeypatch.setattr(copies, "put", slowly)
    run = bench.start(["complete_checkpoint", 1], ["hold"])
    await until(began.is_set)
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()
    assert bench.repository.copied == ["job-1/0/0000000001-1"]


async def test_checkpoints_that_are_not_needed_any_more_are_deleted_from_the_store(
    bench: Bench, copies: CheckpointCopies
) -> None:
    run = bench.start(*[["complete_checkpoint", step] for step in range(1, 8)], ["hold"])
    await until(lambda: "job-1/0/0000000007-1" in bench.repository.copied)
    await until(lambda: len(names(copies)) <= 2)
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()
    assert names(copies)[-1] == "job-1/0/0000000007-1"


async def test_what_no_resume_needs_is_not_copied(bench: Bench, copies: CheckpointCopies) -> None:
    bench.repository.unneeded.add("job-1/0/0000000001-1")
    run = bench.start(["complete_checkpoint", 1], ["hold"])
    await until(lambda: committed(bench))
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()
    assert names(copies) == []


async def test_a_completed_job_copies_nothing_more(bench: Bench, copies: CheckpointCopies) -> None:
    bench.with_timing(upload=60.0)
    end = await bench.run(["complete_checkpoint", 1], ["complete_checkpoint", 2])
    assert end is not None and end.outcome == "completed"
    # Of the first one, or of the second if both were recorded before the upload began.
    assert len(names(copies)) < 2


async def test_a_checkpoint_that_was_never_completed_is_not_copied(
    bench: Bench, copies: CheckpointCopies
) -> None:
    run = bench.start(["checkpoint", 1], ["hold"])
    await until(lambda: committed(bench))
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()
    assert (bench.repository.copied, names(copies)) == ([], [])


async def test_a_store_that_is_away_delays_no_run_and_is_named_once_in_the_log(
    bench: Bench, copies: CheckpointCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, away = copies.put, [True]

    def maybe(folder: str, file: Path) -> None:
        if away[0]:
            raise ConnectionError("no route to the store")
        put(folder, file)

    monkeypatch.setattr(copies, "put", maybe)
    run = bench.start(*[["complete_checkpoint", step] for step in (1, 2, 3)], ["points", 1, 3], ["hold"])
    await until(lambda: any("no route" in line.line for line in bench.repository.lines()))
    await until(lambda: len(bench.repository.losses()) == 2)
    away[0] = False
    await until(lambda: names(copies) == ["job-1/0/0000000003-1"])
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()
    lines = [e for e in bench.repository.events[1] if isinstance(e, Log) and "no route" in e.line]
    assert len(lines) == 1


async def test_no_end_waits_for_a_store_that_another_installation_has_adopted(
    bench: Bench, copies: CheckpointCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_require_permission", Mock(side_effect=NotOwned("the store is only read")))
    bench.with_timing(upload_grace=600.0)
    run = bench.start(*[["complete_checkpoint", step] for step in (1, 2)], ["hold"])
    await until(lambda: len(committed(bench)) == 2)
    run.supervisor.end(AttemptEnd.drained())
    await run.ended()
    assert (bench.repository.copied, names(copies)) == ([], [])
    lines = [e for e in bench.repository.events[1] if isinstance(e, Log) and "only read" in e.line]
    assert len(lines) == 1


async def test_a_store_that_does_not_answer_delays_the_end_for_a_limited_time(
    bench: Bench, copies: CheckpointCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(copies, "put", lambda *_: release.wait(30))
    bench.with_timing(upload_grace=0.2)
    run = bench.start(["complete_checkpoint", 1], ["hold"])
    await until(lambda: committed(bench))
    run.supervisor.end(AttemptEnd.drained())
    try:
        await run.ended()
    finally:
        release.set()
    assert bench.repository.endings[1] == AttemptEnd.drained()
    assert bench.repository.copied == []


async def test_a_worker_that_lost_its_attempt_copies_nothing(bench: Bench, copies: CheckpointCopies) -> None:
    bench.with_timing(upload=60.0)
    run = bench.start(["complete_checkpoint", 1], ["complete_checkpoint", 2], ["hold"])
    await until(lambda: len(committed(bench)) == 2)
    await asyncio.sleep(0.05)
    before = names(copies)
    run.supervisor.end(AttemptEnd.stale())
    await run.ended()
    assert names(copies) == before
