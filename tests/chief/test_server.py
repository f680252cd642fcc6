"""The server's answers and its tracking of connections, inside the test's process."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from django.db import connection

from jobs.actions.runs import control
from jobs.actions.search import external_search
from jobs.models import Job, Project, Trial, Worker
from jobs.spec.external_search import ExternalSearch
from tests.people import People, make_people
from workers.chief import conversion, protocol
from workers.chief.connection_tracker import ConnectionTracker, address_of, open_connections
from workers.chief.server import PortInUse, serve
from workers.supervise.events import event_pace

SECONDS = 20.0
needs_file = pytest.mark.skipif(connection.vendor != "sqlite", reason="its thread opens the database file")


@pytest.fixture
def people(transactional_db: None) -> People:
    return make_people()


@pytest.fixture
def search(people: People) -> Job:
    return external_search.open_search(people.project, "mine", ExternalSearch(), by=people.member)[0]


@pytest.fixture
async def channel(search: Job, people: People, tmp_path: Path) -> AsyncIterator[grpc.aio.Channel]:
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(search.pk, host="127.0.0.1", port=0, grace=1, folder=tmp_path, ready=ready.set_result)
    )
    port = await asyncio.wait_for(ready, SECONDS)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened
        await asyncio.to_thread(_kill, search, people)
    ended = await asyncio.wait_for(task, SECONDS)  # it has ended and no script is connected
    assert ended.state == "stopped"


def _kill(search: Job, people: People) -> None:
    control.kill(Job.objects.get(pk=search.pk), by=people.owner)
    connection.close()


async def call(channel: grpc.aio.Channel, name: str, **fields: Any) -> Any:
    send = channel.unary_unary(
        f"/{protocol.SERVICE}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=protocol.message(f"{name}Response").FromString,
    )
    return await send(protocol.message(f"{name}Request")(**fields), timeout=SECONDS)


async def refusal(channel: grpc.aio.Channel, name: str, **fields: Any) -> tuple[grpc.StatusCode, str]:
    """Return status and message; the error object would keep the connection open."""
    try:
        await call(channel, name, **fields)
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    raise AssertionError(f"{name} was answered")


@needs_file
async def test_invalid_calls_are_refused_with_a_message_and_change_nothing(
    channel: grpc.aio.Channel,
) -> None:
    for name, fields, status, expected in (
        ("UpdateTrial", {"trial_id": "../x", "step": 1}, grpc.StatusCode.NOT_FOUND, "no trial"),
        ("UpdateTrial", {"trial_id": "1-1"}, grpc.StatusCode.FAILED_PRECONDITION, "no longer assigned"),
        ("GetTrial", {"trial_id": "9-9"}, grpc.StatusCode.NOT_FOUND, "no trial 9"),
        ("CreateTrial", {"tuner_id": ""}, grpc.StatusCode.INVALID_ARGUMENT, "KERASTUNER_TUNER_ID"),
        ("CreateTrial", {"tuner_id": "a\0b"}, grpc.StatusCode.INVALID_ARGUMENT, "must not contain NUL"),
        ("CreateTrial", {"tuner_id": "x" * 2**23}, grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max"),
    ):
        code, message = await refusal(channel, name, **fields)
        assert (code, expected in message) == (status, True), message
    assert not await asyncio.to_thread(Trial.objects.exists)


@needs_file
async def test_a_script_runs_a_trial_from_creation_to_its_end(channel: grpc.aio.Channel) -> None:
    first = (await call(channel, "CreateTrial", tuner_id="a")).trial
    assert first == (await call(channel, "CreateTrial", tuner_id="a")).trial
    answer = await call(
        channel, "UpdateTrial", trial_id=first.trial_id, metrics={"default_objective": 0.5}, step=3
    )
    (observed,) = answer.trial.metrics.metrics["default_objective"].observations
    assert (list(observed.value), observed.step) == ([0.5], 3)
    space = conversion.hyperparameters(
        ExternalSearch.model_validate({"space": [{"name": "x", "kind": "float", "min": 0, "max": 1}]}).space,
        {"x": 0.25},
    )
    first.hyperparameters.CopyFrom(space)
    first.status = protocol.number_of("TrialStatus", "COMPLETED")
    await call(channel, "EndTrial", trial=first)
    await call(channel, "EndTrial", trial=first)  # the answer to the first was lost
    (best,) = (await call(channel, "GetBestTrials", num_trials=5)).trials
    assert (best.trial_id, best.score.value, best.score.step) == (first.trial_id, 0.5, 3)
    assert conversion.values(best.hyperparameters) == {"x": 0.25}
    assert (await call(channel, "GetSpace")).hyperparameters.space.float_space[0].name == "x"
    assert (await call(channel, "CreateTrial", tuner_id="a")).trial.trial_id == "2-2"


@needs_file
async def test_a_call_that_waits_when_the_chief_ends_is_answered_with_ask_again(
    search: Job, tmp_path: Path
) -> None:
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(search.pk, host="127.0.0.1", port=0, grace=1, folder=tmp_path, ready=ready.set_result)
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{await ready}") as channel:
        assert (await call(channel, "CreateTrial", tuner_id="a")).trial.trial_id == "1-1"
        waiting = asyncio.create_task(call(channel, "CreateTrial", tuner_id="b"))
        while not await asyncio.to_thread(Worker.objects.filter(name="b").exists):
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        assert protocol.member_of("TrialStatus", (await waiting).trial.status) == "IDLE"
    assert (await asyncio.wait_for(task, SECONDS)).state == "running"


@needs_file
async def test_reports_above_the_quota_of_events_wait_and_the_search_has_one_warning(
    channel: grpc.aio.Channel, search: Job, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_pace, "BURST_SECONDS", 0.1)
    await asyncio.to_thread(limit_events, people, 100)
    name = (await call(channel, "CreateTrial", tuner_id="a")).trial.trial_id
    # The chief reads the quota once a second.
    while not await asyncio.to_thread(warnings_of, search):
        await call(channel, "UpdateTrial", trial_id=name, metrics={"default_objective": 0.5}, step=0)
    began = time.monotonic()
    for step in range(1, 6):
        await call(channel, "UpdateTrial", trial_id=name, metrics={"default_objective": 0.5}, step=step)
    assert time.monotonic() - began > 0.8, "each counts as 21 events"
    answer = await call(channel, "GetTrial", trial_id=name)
    steps = {
        observation.step for observation in answer.trial.metrics.metrics["default_objective"].observations
    }
    assert steps == set(range(6))
    assert [warning["code"] for warning in await asyncio.to_thread(warnings_of, search)] == [
        "events_over_quota"
    ]


def limit_events(people: People, events: int) -> None:
    Project.objects.filter(pk=people.project.pk).update(max_events=events)


def warnings_of(search: Job) -> list[dict[str, str]]:
    return Job.objects.get(pk=search.pk).warnings


async def test_a_port_in_use_is_reported_in_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"127.0.0.1:{port} cannot be bound"):
            await serve(1, host="127.0.0.1", port=port, grace=1, folder=tmp_path, ready=print)


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:4242", ("127.0.0.1", 4242)),
        ("ipv6:%5B::1%5D:4242", ("::1", 4242)),
        ("ipv6:%5B::ffff:10.0.0.1%5D:4242", ("10.0.0.1", 4242)),
        ("unix:", None),
    ],
)
def test_a_peer_is_parsed_to_its_address(peer: str, address: tuple[str, int] | None) -> None:
    assert address_of(peer) == address


def test_a_connection_is_listed_until_it_closes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as script:
            accepted, _ = server.accept()
            assert open_connections(port) == {script.getsockname()}
        accepted.close()
        assert open_connections(port) == set()


@pytest.mark.parametrize(
    ("silent", "lost"), [(60.0, [7]), (1800.0, [])], ids=["at once", "after gRPC closed an idle connection"]
)
def test_a_closed_connection_counts_unless_it_was_idle(
    monkeypatch: pytest.MonkeyPatch, silent: float, lost: list[int]
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    tracker = ConnectionTracker(grace=30)
    tracker.record_call(7, "ipv4:10.0.0.1:4242")
    assert tracker.connected({("10.0.0.1", 4242)}) == [7]
    now += silent
    assert tracker.pop_disconnected(set()) == []
    now += 31
    assert tracker.pop_disconnected(set()) == lost
    assert tracker.pop_disconnected(set()) == []
