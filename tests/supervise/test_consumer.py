"""The message consumer is started once the broker answers. Any living process serves as the consumer here."""

import asyncio
import contextlib
import threading
from dataclasses import replace
from pathlib import Path

from tests.supervise.conftest import QUICK, until
from workers.node.consumer import Consumer


async def test_a_consumer_is_started_once_the_broker_answers(tmp_path: Path) -> None:
    broker, asked = threading.Event(), list[str]()

    def send_canary(token: str) -> bool:
        asked.append(token)
        return broker.is_set()

    consumer = Consumer(
        ("sleep", "60"),
        socket=tmp_path / "hints",
        send_canary=send_canary,
        timing=replace(QUICK, canary=0.05),
    )
    running = asyncio.create_task(consumer.run())
    await until(lambda: len(asked) > 3)
    assert (consumer.pid, consumer.restarts) == (None, 0)
    broker.set()
    await until(lambda: consumer.pid)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert consumer.pid is None
