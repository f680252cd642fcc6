"""Batching, with a fake child that answers on request."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from workers.model_process.errors import (
    ClientGone,
    Saturated,
)
from workers.model_process.frames import Frame
from workers.serving.versions.batcher import Batcher, BatchLimits, WorkItem
from workers.serving.versions.child_process import Answered

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
    fields = {"max_batch": 4, "queue_rows": 16, "batch_seconds": 60, **limits}
    new_batcher, child = Batcher(BatchLimits(**fields)), FakeChild()  # type: ignore[arg-type]
    new_batcher.attach(child)
    return new_batcher, child


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
