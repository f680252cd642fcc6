"""Worker processes for bodies that are killed, stopped or wait."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator

import numpy as np
import pytest

from tests.serving.processes.test_bodies import ONE, ROWS, VALUES, processes, soon
from workers.model_process.errors import (
    DeadlineExceeded,
    Saturated,
    Unavailable,
)
from workers.serving.bodies import pool
from workers.serving.bodies.codec import BodyCodec
from workers.serving.bodies.pool import BodyWorkerCommand, BodyWorkers
from workers.serving.protocols.tensorflow_serving import PREDICT
from workers.serving.versions.child_process import ChildProcess


@pytest.fixture
async def workers() -> AsyncIterator[BodyWorkers]:
    workers = BodyWorkers(1)
    yield workers
    await workers.close()


@pytest.fixture
def codec(workers: BodyWorkers) -> BodyCodec:
    return BodyCodec(workers)


async def test_a_worker_that_was_killed_is_replaced(codec: BodyCodec) -> None:
    await codec.parse(PREDICT, ROWS, None, ONE, soon())
    (worker,) = processes()
    worker.suspend()
    parsing = asyncio.create_task(codec.parse(PREDICT, ROWS, None, ONE, soon()))
    await asyncio.sleep(0.05)
    worker.kill()
    np.testing.assert_array_equal((await parsing).arrays[0], VALUES)
    (successor,) = processes()
    assert successor.pid != worker.pid


async def test_a_worker_that_ended_while_it_was_idle_costs_no_request(
    codec: BodyCodec, workers: BodyWorkers
) -> None:
    await codec.parse(PREDICT, ROWS, None, ONE, soon())
    workers._idle[0]._transport.close()
    assert (await codec.parse(PREDICT, ROWS, None, ONE, soon())).rows


class _SmallWorkerCommand(BodyWorkerCommand):
    """Body workers that may grow to 256 MiB."""

    def arguments(self, descriptor: int) -> list[str]:
        python, _, module, *options = super().arguments(descriptor)
        script = f"from {module} import __main__, worker; worker._MAX_RESIDENT_BYTES = 2**28; __main__.main()"
        return [python, "-c", script, *options]


async def test_a_worker_that_a_large_process_has_started_is_kept(
    codec: BodyCodec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BodyWorkerCommand", _SmallWorkerCommand)
    large = np.ones(2**28, np.uint8)
    await codec.parse(PREDICT, ROWS, None, ONE, soon())
    del large
    (worker,) = processes()
    await codec.parse(PREDICT, ROWS, None, ONE, soon())
    assert processes() == [worker]


async def test_a_worker_that_was_stopped_costs_one_request_and_is_replaced(codec: BodyCodec) -> None:
    await codec.parse(PREDICT, ROWS, None, ONE, soon())
    (worker,) = processes()
    worker.suspend()
    with pytest.raises(DeadlineExceeded):
        await codec.parse(PREDICT, ROWS, None, ONE, soon(0.2))
    assert not worker.is_running()
    assert (await codec.parse(PREDICT, ROWS, None, ONE, soon())).rows


async def test_a_worker_that_cannot_start_costs_one_request(
    codec: BodyCodec, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_process(command: object) -> ChildProcess:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(ChildProcess, "spawn", no_process)
        with pytest.raises(Unavailable) as failed:
            await codec.parse(PREDICT, ROWS, None, ONE, soon())
    assert failed.value.retry_after == 1
    assert (await codec.parse(PREDICT, ROWS, None, ONE, soon())).rows


async def test_many_clients_may_wait_together(codec: BodyCodec) -> None:
    body = json.dumps({"instances": VALUES[:2000].tolist()}).encode()
    codec.open_requests = 64
    answers = await asyncio.gather(*[codec.parse(PREDICT, body, None, ONE, soon()) for _ in range(64)])
    assert [len(answer.arrays[0]) for answer in answers] == 64 * [2000]


async def test_the_bytes_that_wait_are_bounded() -> None:
    workers = BodyWorkers(1, waiting_bytes=3 * len(ROWS))
    codec = BodyCodec(workers)
    answers = await asyncio.gather(
        *[codec.parse(PREDICT, ROWS, None, ONE, soon()) for _ in range(5)], return_exceptions=True
    )
    await workers.close()
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(refused) == 2
    assert all(isinstance(error, Saturated) and error.retry_after for error in refused)
