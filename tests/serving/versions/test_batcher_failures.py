"""Batches that fail: dead children, memory, time, and requests that fail alone."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from tests.serving.versions.test_batcher import Array, batcher, outcome, result, rows, sizes, turn
from workers.model_process.errors import (
    BodyTooLarge,
    ServingError,
    Unavailable,
)
from workers.serving.versions.batcher import Outputs, WorkItem
from workers.serving.versions.child_process import Answered, ChildExited, ChildFailed


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
