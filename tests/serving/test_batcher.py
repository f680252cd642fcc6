"""The queue in front of a child, with a child that answers when told to."""

import asyncio
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from workers.serving.errors import BadRequest, BodyTooLarge, ClientGone, Saturated, Unavailable
from workers.serving.versions.batcher import Batcher, Work
from workers.serving.versions.link import ChildFailed, ChildGone
from workers.serving.wire import Frame

Array = npt.NDArray[np.float32]


class FakeLink:
    """Doubles what it is sent, once the test says so."""

    def __init__(self) -> None:
        self.batches: list[Array] = []
        self.killed = False
        self._answer: asyncio.Future[Frame]

    def predict(self, tensors: Sequence[Array]) -> asyncio.Future[Frame]:
        self.batches.append(tensors[0])
        self._answer = asyncio.get_running_loop().create_future()
        return self._answer

    async def answer(self) -> None:
        self._answer.set_result(Frame({}, [self.batches[-1] * 2]))
        await turn()

    async def fail(self, error: Exception) -> None:
        self._answer.set_exception(error)
        await turn()

    def kill(self) -> None:
        self.killed = True


async def turn() -> None:
    """Let everything run that can run."""
    for _ in range(5):
        await asyncio.sleep(0)


def batcher(**limits: float) -> tuple[Batcher, FakeLink]:
    given = {"max_batch": 4, "queue_rows": 16, "batch_seconds": 60, **limits}
    made, link = Batcher(**given), FakeLink()  # type: ignore[arg-type]
    made.attach(link)
    return made, link


def rows(*values: float) -> list[Array]:
    return [np.array([[value] for value in values], np.float32)]


def sizes(link: FakeLink) -> list[int]:
    return [len(batch) for batch in link.batches]


def result(work: Work) -> list[float]:
    return [float(value) for value in work.future.result()[0][:, 0]]


async def test_an_idle_child_gets_a_request_at_once_and_a_busy_one_gets_what_collected() -> None:
    queue, link = batcher()
    (first,) = queue.submit(rows(1))
    await turn()
    later = [queue.submit(rows(value))[0] for value in (2, 3, 4)]
    await turn()
    assert sizes(link) == [1]
    await link.answer()
    assert sizes(link) == [1, 3]
    await link.answer()
    assert [result(work) for work in (first, *later)] == [[2], [4], [6], [8]]


async def test_requests_of_one_turn_share_a_batch() -> None:
    queue, link = batcher()
    queue.submit(rows(1))
    queue.submit(rows(2, 3))
    await turn()
    assert sizes(link) == [3]


async def test_a_request_longer_than_a_batch_is_cut() -> None:
    queue, link = batcher()
    works = queue.submit(rows(*range(10)))
    for _ in range(3):
        await turn()
        await link.answer()
    assert sizes(link) == [4, 4, 2]
    assert [value for work in works for value in result(work)] == [2 * value for value in range(10)]


async def test_requests_of_other_shapes_wait_for_their_own_batch() -> None:
    queue, link = batcher()
    queue.submit([np.zeros((1, 2), np.float32)])
    queue.submit([np.zeros((1, 3), np.float32)])
    await turn()
    await link.answer()
    assert [batch.shape for batch in link.batches] == [(1, 2), (1, 3)]


async def test_the_queue_is_bounded_in_rows() -> None:
    queue, _ = batcher()
    queue.submit(rows(*range(4)))
    await turn()
    queue.submit(rows(*range(16)))
    with pytest.raises(Saturated) as refused:
        queue.submit(rows(1))
    assert refused.value.retry_after is not None
    with pytest.raises(BodyTooLarge, match="17 rows; the limit is 16"):
        queue.submit(rows(*range(17)))


async def test_an_abandoned_request_leaves_the_queue() -> None:
    queue, link = batcher()
    queue.submit(rows(1))
    await turn()
    gone = queue.submit(rows(2))
    queue.submit(rows(3))
    queue.abandon(gone, ClientGone("left"))
    assert queue.waiting_rows == 1
    await link.answer()
    assert [float(value) for value in link.batches[-1][:, 0]] == [3]


async def test_requests_of_a_dead_child_are_tried_once_more() -> None:
    queue, link = batcher()
    (work,) = queue.submit(rows(1))
    await turn()
    (behind,) = queue.submit(rows(2))
    await link.fail(ChildGone("killed"))
    queue.attach(link)
    await turn()
    await link.answer()
    assert (result(work), result(behind)) == ([2], [4])


async def test_a_request_that_kills_two_children_is_given_up() -> None:
    queue, link = batcher()
    (work,) = queue.submit(rows(1))
    for _ in range(2):
        await turn()
        await link.fail(ChildGone("killed"))
        queue.attach(link)
    with pytest.raises(Unavailable):
        work.future.result()


async def test_what_the_model_itself_refuses_is_the_callers_fault() -> None:
    queue, link = batcher()
    (work,) = queue.submit(rows(1))
    await turn()
    await link.fail(ChildFailed("shapes do not fit"))
    with pytest.raises(BadRequest, match="shapes do not fit"):
        work.future.result()


async def test_a_version_that_cannot_load_fails_what_waits_and_what_comes() -> None:
    queue, _ = batcher()
    queue.detach()
    (work,) = queue.submit(rows(1))
    queue.refuse("does not load")
    with pytest.raises(Unavailable, match="does not load"):
        work.future.result()
    with pytest.raises(Unavailable):
        queue.submit(rows(1))
    assert await queue.drained(0.1)


async def test_drained_waits_for_queue_and_child() -> None:
    queue, link = batcher()
    queue.submit(rows(1))
    await turn()
    assert not await queue.drained(0.01)
    await link.answer()
    assert await queue.drained(0.01)


async def test_a_child_that_stays_silent_is_killed() -> None:
    queue, link = batcher(batch_seconds=0.01)
    queue.submit(rows(1))
    async with asyncio.timeout(5):
        while not link.killed:
            await asyncio.sleep(0.005)
