"""A node's loops: how often a step is called, with and without a database."""

import asyncio

import pytest

from workers.node.membership import repeat
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.backoff import Backoff


async def test_a_failed_renewal_is_repeated_before_the_next_interval() -> None:
    calls = 0
    renewed = asyncio.Event()

    async def renew() -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise DatabaseUnavailable("no answer")
        renewed.set()

    loop = asyncio.create_task(repeat(renew, 600.0, asyncio.Event(), Backoff(0.01, 0.02)))
    await asyncio.wait_for(renewed.wait(), 5.0)
    loop.cancel()
    assert calls == 3


async def test_a_hint_during_a_step_causes_another_step() -> None:
    wake, calls = asyncio.Event(), 0

    async def poll() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            wake.set()

    loop = asyncio.create_task(repeat(poll, 600.0, wake, Backoff(0.01, 0.02)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(loop), 0.2)
    loop.cancel()
    assert calls == 2
