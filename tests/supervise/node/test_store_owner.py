"""A worker asks whose the artifact store is, without waiting for a store that does not answer."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from jobs.queries.storage import ownership
from jobs.queries.storage.ownership import Identity, StoreMark
from workers.node.db_threads import DatabaseThread, abandoned_calls
from workers.node.store_owner import StoreOwner

OWN, OTHER = "a" * 32, "f" * 32
type Read = Callable[[], StoreMark]


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreOwner]:
    monkeypatch.setattr(ownership, "identity", lambda: Identity(OWN, is_copy=False))
    owner = StoreOwner(DatabaseThread("test"), patience=0.05)
    yield owner
    owner.close()


def answer_with(monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    monkeypatch.setattr(ownership, "read_mark", lambda *, is_copy: read())


async def test_a_foreign_store_is_a_reason_to_take_no_work_until_it_is_adopted(
    owner: StoreOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, lambda: StoreMark(OTHER, has_files=False))
    await owner.ask()
    assert "belongs to another installation (ffffffff)" in (owner.problem or "")
    answer_with(monkeypatch, lambda: StoreMark(OWN, has_files=False))
    await owner.ask()
    assert owner.problem is None


async def test_a_store_that_does_not_answer_holds_one_thread_however_often_it_is_asked(
    owner: StoreOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, lambda: StoreMark(OTHER, has_files=False))
    await owner.ask()
    silent, requests = threading.Event(), []

    def wait() -> StoreMark:
        requests.append(1)
        silent.wait(20)
        return StoreMark(OWN, has_files=False)

    answer_with(monkeypatch, wait)
    for _ in range(30):
        await owner.ask()
    assert owner.problem is not None  # the last answer
    assert (len(requests), abandoned_calls()) == (1, 0)
    silent.set()
    async with asyncio.timeout(10):
        while owner.problem is not None:
            await owner.ask()


async def test_an_error_of_the_store_leaves_the_last_answer(
    owner: StoreOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> StoreMark:
        raise OSError("no route")

    answer_with(monkeypatch, lambda: StoreMark(OTHER, has_files=False))
    await owner.ask()
    answer_with(monkeypatch, fail)
    await owner.ask()
    assert owner.problem is not None
