"""Ids that a restored database gives again: a worker from before the restore writes to no other's attempt."""

from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobs.actions.runs import attempt_end, attempts, schedule, workers
from jobs.actions.runs.fence import Holder
from jobs.errors import StaleFence
from jobs.messages import events as contract
from jobs.models import Attempt, Worker
from jobs.states import AttemptState, Outcome
from tests.jobs.yard import PretendWorker, Yard
from workers.node.attempt_repository import DatabaseAttemptRepository
from workers.node.db_threads import DatabaseThread
from workers.supervise.attempt_end import AttemptEnd

EVENT = contract.Started(time=1.0)


class Restored(NamedTuple):
    """An attempt that runs, and the process that had its id, and that of its worker, before the restore."""

    attempt: Attempt
    former: Holder
    present: Holder


@pytest.fixture
def restored(installation: Yard, worker: PretendWorker) -> Restored:
    installation.submit()
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    Worker.objects.update(process="b" * 32)
    return Restored(attempt, Holder(worker.row.pk, "a" * 32), Holder(worker.row.pk, "b" * 32))


def is_unchanged(restored: Restored) -> bool:
    """Return whether attempt and worker are those of the present process."""
    row = Attempt.objects.select_related("worker").get()
    return (row.state, row.spool_acked, row.worker.state, row.lease_until) == (
        AttemptState.RUNNING, 0, Worker.State.UP, restored.attempt.lease_until,
    )  # fmt: skip


def test_a_worker_whose_id_another_process_has_is_told_so_and_changes_nothing(restored: Restored) -> None:
    restored.attempt.refresh_from_db()
    worker, process = restored.former
    assert not workers.heartbeat(worker, devices=[], info={}, process=process)
    assert attempts.renew(worker, [restored.attempt.pk], process=process) == {}
    attempt_end.decline_assigned(worker, process=process)
    workers.mark_as_gone(worker, process=process)
    assert is_unchanged(restored)
    assert workers.heartbeat(worker, devices=[], info={}, process=restored.present.process)
    assert attempts.renew(worker, [restored.attempt.pk], process=restored.present.process)


def test_an_attempt_is_claimed_only_by_the_process_it_is_placed_on(
    installation: Yard, worker: PretendWorker
) -> None:
    installation.submit()
    schedule.place_jobs()
    (offered,) = attempts.assigned_to(worker.row.pk)
    Worker.objects.update(process="b" * 32)
    assert attempts.claim(offered.pk, worker_id=worker.row.pk, process="a" * 32) is None
    assert attempts.claim(offered.pk, worker_id=worker.row.pk, process="b" * 32) is not None


def test_work_that_was_not_claimed_is_not_ended_by_a_run_that_had_its_id(
    installation: Yard, worker: PretendWorker
) -> None:
    Worker.objects.update(process="a" * 32)
    installation.submit()
    schedule.place_jobs()
    (offered,) = attempts.assigned_to(worker.row.pk)
    with pytest.raises(StaleFence, match="is not claimed"):
        attempt_end.finish(offered.pk, Outcome.COMPLETED, by=Holder(worker.row.pk, "a" * 32))
    offered.refresh_from_db()
    assert offered.state == AttemptState.ASSIGNED


# They are refused before their content is read.
ANY_SANDBOX: Any = object()
ANY_PACKAGES: Any = object()
CALLS: dict[str, Callable[[DatabaseAttemptRepository, int, Path], Awaitable[Any]]] = {
    "task_for": lambda rows, pk, folder: rows.task_for(pk, folder=folder, threads=1),
    "record_sandbox": lambda rows, pk, _: rows.record_sandbox(pk, ANY_SANDBOX),
    "record_packages": lambda rows, pk, _: rows.record_packages(pk, ANY_PACKAGES, None),
    "store_file": lambda rows, pk, folder: rows.store_file(pk, folder),
    "share_events": lambda rows, pk, _: rows.share_events(pk, 1),
    "require_within_disk": lambda rows, pk, _: rows.require_within_disk(pk),
    "record": lambda rows, pk, _: rows.record(pk, [EVENT], spool_position=1, stored={}),
    "copies_needed": lambda rows, pk, _: rows.copies_needed(pk, ["job-1/0/0000000001-1"]),
    "record_copy": lambda rows, pk, _: rows.record_copy(pk, "job-1/0/0000000001-1"),
    "finish": lambda rows, pk, _: rows.finish(pk, AttemptEnd(Outcome.COMPLETED)),
}
"""Each call of a worker for one of its attempts, except for the claim."""


def answer[T](call: Coroutine[Any, Any, T]) -> T:
    """Run a call that waits for nothing."""
    try:
        call.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_known", [True, False], ids=["another's", "unknown"])
def test_each_call_for_an_attempt_is_refused_to_a_process_that_does_not_hold_it(
    restored: Restored, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, *, is_known: bool
) -> None:
    async def here(_thread: DatabaseThread, function: Callable[[], Any], *, timeout: float | None) -> Any:
        assert timeout != 0
        return function()

    monkeypatch.setattr(DatabaseThread, "call", here)
    restored.attempt.refresh_from_db()
    rows = DatabaseAttemptRepository(restored.former, renew_timeout=1.0)
    key = restored.attempt.pk if is_known else restored.attempt.pk + 1
    with pytest.raises(StaleFence):
        answer(CALLS[name](rows, key, tmp_path))  # type: ignore[arg-type]
    assert is_unchanged(restored)


def test_the_process_that_holds_an_attempt_records_its_events_and_its_end(restored: Restored) -> None:
    pk, by = restored.attempt.pk, restored.present
    attempts.record_events(pk, [EVENT], spool_position=10, stored={}, by=by)
    attempts.record_events(pk, [EVENT], spool_position=10, stored={}, by=by)  # its answer was lost
    attempt_end.finish(pk, Outcome.STOPPED, by=by)
    attempt_end.finish(pk, Outcome.STOPPED, by=by)
    assert Attempt.objects.get().outcome == Outcome.STOPPED
