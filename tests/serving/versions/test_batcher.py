"""Batching, with a fake child that answers on request."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from workers.model_process.errors import (
    BodyTooLarge,
    ClientGone,
    Saturated,
    ServingError,
    Unavailable,
)
from workers.model_process.frames import Frame
from workers.serving.versions.batcher import Batcher, BatchLimits, Outputs, WorkItem
from workers.serving.versions.child_process import Answered, ChildExited, ChildFailed

Array = npt.NDArray[np.float32]


class FakeChild:
    """Doubles its inputs when the test calls `answer`."""

    def __init__(self) -> None:
        self.batches: list[Array] = []
        self.killed = False
        self.is_compiling = False
        self._answered: Answered

    def predict(self, tensors: Sequence[Array], answered: Answered) -> None:
        self.batches.append(tensors[0])
        self._answered = answered

    async def answer(self) -> None:
        self._answered(Frame({}, [self.batches[-1] * 2]))
        await turn()

    async def fail(self, error: Exception) -> None:
        self._answered(error)
        await turn()

    def kill(self) -> None:
        self.killed = True


async def turn() -> None:
    """Run all pending callbacks."""
    for _ in range(5):
        await asyncio.sleep(0)


def batcher(**limits: float) -> tuple[Batcher, FakeChild]:
    given = {"max_batch": 4, "queue_rows": 16, "batch_seconds": 60, **limits}
    made, child = Batcher(BatchLimits(**given)), FakeChild()  # type: ignore[arg-type]
    made.attach(child)
    return made, child


def rows(*values: float) -> list[Array]:
    return [np.array([[value] for value in values], np.float32)]


def sizes(child: FakeChild) -> list[int]:
    return [len(batch) for batch in child.batches]


def outcome(work: WorkItem) -> "asyncio.Future[Any]":
    assert isinstance(work.answer, asyncio.Future)
    return work.answer


def result(work: WorkItem) -> list[float]:
    return [float(value) for value in outcome(work).result()[0][:, 0]]


async def test_an_idle_child_gets_a_request_at_once_and_a_busy_one_the_collected_batch() -> None:
    queue, child = batcher()
    first = queue.submit(rows(1))
    await turn()
    later = [queue.submit(rows(value)) for value in (2, 3, 4)]
    await turn()
    assert sizes(child) == [1]
    await child.answer()
    assert sizes(child) == [1, 3]
    await child.answer()
    assert [result(work) for work in (first, *later)] == [[2], [4], [6], [8]]


async def test_requests_of_one_turn_share_a_batch() -> None:
    queue, child = batcher()
    queue.submit(rows(1))
    queue.submit(rows(2, 3))
    await turn()
    assert sizes(child) == [3]


async def test_a_request_longer_than_a_batch_is_computed_in_slices() -> None:
    queue, child = batcher()
    work = queue.submit(rows(*range(10)))
    for _ in range(3):
        await turn()
        await child.answer()
    assert sizes(child) == [4, 4, 2]
    assert result(work) == [2 * value for value in range(10)]


async def test_a_request_longer_than_the_queue_is_computed_in_slices() -> None:
    queue, child = batcher()
    work = queue.submit(rows(*range(50)))
    for _ in range(13):
        await turn()
        await child.answer()
    assert result(work) == [2 * value for value in range(50)]
    assert queue.waiting_rows == 0


async def test_others_are_answered_between_the_slices_of_a_long_request() -> None:
    queue, child = batcher()
    long = queue.submit(rows(*range(50)))
    await turn()
    short = queue.submit(rows(7))
    await child.answer()
    await child.answer()
    await child.answer()
    assert result(short) == [14]
    assert not long.answer.done()


async def test_long_requests_leave_room_for_short_ones() -> None:
    queue, _ = batcher()
    while True:
        try:
            queue.submit(rows(*range(50)))
        except Saturated:
            break
    queue.submit(rows(1))


async def test_requests_of_other_shapes_wait_for_their_own_batch() -> None:
    queue, child = batcher()
    queue.submit([np.zeros((1, 2), np.float32)])
    queue.submit([np.zeros((1, 3), np.float32)])
    await turn()
    await child.answer()
    assert [batch.shape for batch in child.batches] == [(1, 2), (1, 3)]


async def test_the_queue_is_bounded_in_rows() -> None:
    queue, _ = batcher()
    for _ in range(5):
        queue.submit(rows(*range(4)))
        await turn()
    with pytest.raises(Saturated) as refused:
        queue.submit(rows(1))
    assert refused.value.retry_after is not None


async def test_a_cancelled_request_leaves_the_queue() -> None:
    queue, child = batcher()
    queue.submit(rows(1))
    await turn()
    gone = queue.submit(rows(2))
    queue.submit(rows(3))
    queue.cancel(gone, ClientGone("left"))
    assert queue.waiting_rows == 1
    await child.answer()
    assert [float(value) for value in child.batches[-1][:, 0]] == [3]


async def test_requests_of_a_dead_child_are_retried_once() -> None:
    queue, child = batcher()
    work = queue.submit(rows(1))
    await turn()
    behind = queue.submit(rows(2))
    await child.fail(ChildExited("killed"))
    queue.attach(child)
    await turn()
    await child.answer()
    assert (result(work), result(behind)) == ([2], [4])


async def test_a_request_that_kills_two_children_fails() -> None:
    queue, child = batcher()
    work = queue.submit(rows(1))
    for _ in range(2):
        await turn()
        await child.fail(ChildExited("killed"))
        queue.attach(child)
    with pytest.raises(Unavailable):
        outcome(work).result()


async def test_a_request_that_kills_its_children_fails_alone() -> None:
    queue, child = batcher()
    good, deadly = queue.submit(rows(1)), queue.submit(rows(2))
    await turn()
    await child.fail(ChildExited("killed"))
    queue.attach(child)
    await turn()
    await child.answer()
    await child.fail(ChildExited("killed"))
    assert sizes(child) == [2, 1, 1]
    assert result(good) == [2]
    with pytest.raises(Unavailable):
        outcome(deadly).result()


@pytest.mark.parametrize(
    ("kind", "status", "retry_after"), [("input", 400, None), ("memory", 503, 1), ("internal", 500, None)]
)
async def test_the_kind_of_a_failure_decides_the_status(
    kind: str, status: int, retry_after: int | None
) -> None:
    queue, child = batcher()
    work = queue.submit(rows(1))
    await turn()
    await child.fail(ChildFailed("does not fit", kind))
    with pytest.raises(ServingError, match="does not fit") as failed:
        outcome(work).result()
    assert (failed.value.status, failed.value.retry_after) == (status, retry_after)


async def test_requests_that_exceed_the_memory_together_are_tried_alone() -> None:
    queue, child = batcher()
    first, second = queue.submit(rows(1)), queue.submit(rows(2))
    await turn()
    await child.fail(ChildFailed("too large", "memory"))
    await child.answer()
    await child.answer()
    assert sizes(child) == [2, 1, 1]
    assert (result(first), result(second)) == ([2], [4])


async def test_an_answer_beyond_its_limit_is_refused() -> None:
    queue, child = batcher(answer_bytes=20)
    work = queue.submit(rows(*range(50)))
    await turn()
    await child.answer()
    await child.answer()
    with pytest.raises(BodyTooLarge):
        outcome(work).result()
    assert (len(child.batches), queue.waiting_rows) == (2, 0)


async def test_a_slice_of_a_dead_child_is_computed_again_and_the_others_are_kept() -> None:
    queue, child = batcher()
    work = queue.submit(rows(*range(10)))
    await turn()
    await child.answer()
    await child.fail(ChildExited("killed"))
    queue.attach(child)
    for _ in range(2):
        await turn()
        await child.answer()
    assert sizes(child) == [4, 4, 4, 2]
    assert result(work) == [2 * value for value in range(10)]


async def test_a_version_that_cannot_load_fails_queued_and_new_requests() -> None:
    queue, _ = batcher()
    queue.detach()
    work = queue.submit(rows(1))
    queue.refuse("does not load")
    with pytest.raises(Unavailable, match="does not load"):
        outcome(work).result()
    with pytest.raises(Unavailable):
        queue.submit(rows(1))
    assert await queue.drained(0.1)


async def test_drained_waits_for_queue_and_child() -> None:
    queue, child = batcher()
    queue.submit(rows(1))
    await turn()
    assert not await queue.drained(0.01)
    await child.answer()
    assert await queue.drained(0.01)


async def test_a_child_that_does_not_answer_is_killed() -> None:
    queue, child = batcher(batch_seconds=0.01)
    queue.submit(rows(1))
    async with asyncio.timeout(60):
        while not child.killed:
            await asyncio.sleep(0.005)


async def test_a_batch_may_take_three_times_as_long_as_the_slowest_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workers.serving.versions.batcher._TICK_SECONDS", 0.01)
    queue, child = batcher(batch_seconds=0.01)
    queue.attach(child, slowest=1.0)
    work = queue.submit(rows(1))
    await asyncio.sleep(0.1)
    assert not child.killed
    await child.answer()
    assert result(work) == [2]


async def test_a_new_program_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.serving.versions.batcher._TICK_SECONDS", 0.01)
    queue, child = batcher(batch_seconds=0.01, compile_seconds=60)
    child.is_compiling = True
    queue.submit(rows(1))
    await asyncio.sleep(0.1)
    assert not child.killed


async def test_a_batch_that_cannot_be_sent_fails_and_the_queue_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, child = batcher()

    def no_memory(tensors: Sequence[Array], answered: Answered) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(child, "predict", no_memory)
        lost = queue.submit(rows(1))
        await turn()
    assert isinstance(outcome(lost).exception(), Unavailable)
    following = queue.submit(rows(2))
    await turn()
    await child.answer()
    assert result(following) == [4]
    assert await queue.drained(1)


async def test_a_request_whose_outputs_need_too_much_memory_fails_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, child = batcher()
    failing, other = queue.submit(rows(1)), queue.submit(rows(2))
    await turn()
    receive = WorkItem.receive

    def no_memory(item: WorkItem, outputs: Outputs) -> None:
        if item is failing:
            raise MemoryError
        receive(item, outputs)

    monkeypatch.setattr(WorkItem, "receive", no_memory)
    await child.answer()
    with pytest.raises(Unavailable, match="memory"):
        outcome(failing).result()
    assert result(other) == [4]
    assert await queue.drained(1)


async def test_a_request_whose_slices_cannot_be_joined_fails_and_the_queue_goes_on() -> None:
    queue, child = batcher()
    failing = queue.submit(rows(*range(6)))
    await turn()
    await child.answer()
    child.batches[-1] = np.zeros((2, 9), np.float32)
    await child.answer()
    assert type(outcome(failing).exception()) is ServingError
    following = queue.submit(rows(2))
    await turn()
    await child.answer()
    assert result(following) == [4]
