"""A draining worker gives its runs the time that they need, and what stops a worker gives it its own."""

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from jobs.messages import worker_end
from jobs.messages.events import CheckpointCommitted
from jobs.messages.worker_end import seconds_for_runs, seconds_to_end, seconds_to_end_in
from jobs.store import ObjectStore
from jobs.store.checkpoint_copies import CheckpointCopies
from tests.ops.conftest import ROOT
from tests.supervise.conftest import Bench, until
from workers.node import draining
from workers.node.held_attempts import HeldAttempts
from workers.node.membership import Membership
from workers.supervise.checkpoints.channel import CopyChannel
from workers.supervise.timing import Timing


class PretendMembership:
    """A registered worker that runs one attempt; its copies to the store take a while."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.attempts = HeldAttempts(bench.node, disk_shortage=lambda: None)
        self.is_gone = False

    async def leave(self) -> None:
        self.attempts.draining = True

    async def deregister(self) -> None:
        self.is_gone = True

    async def drain(self, killed: asyncio.Event) -> None:
        await draining.drain(cast(Membership, self), self.bench.node.timing, killed)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Let each copy to the store take 1.5 s, or, while this is set, until the end of the test."""
    never, end, copy = Event(), Event(), CheckpointCopies.put

    def slowly(copies: CheckpointCopies, folder: str, file: Path) -> None:
        if never.is_set():
            end.wait(30)
        time.sleep(1.5)
        copy(copies, folder, file)

    monkeypatch.setattr(CheckpointCopies, "put", slowly)
    yield never
    end.set()


@pytest.fixture
async def membership(
    bench: Bench,
    put: Event,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> PretendMembership:
    """A worker whose run has a checkpoint that is not copied yet, and does not yield."""
    monkeypatch.setattr(worker_end, "KILL_SECONDS", 0.3)
    monkeypatch.setattr(draining, "KILL_SECONDS", 0.3)
    store = ObjectStore(f"memory://{tmp_path}", tmp_path / "cache")
    assert store.checkpoint_copies is not None
    channel = CopyChannel(store.checkpoint_copies, bench.node.checkpoints)
    timing = replace(bench.node.timing, upload=60.0, grace=1.0, upload_grace=20.0)
    bench.node = replace(bench.node, copies=channel, timing=timing)
    bench.repository.scripts[1] = [*(["complete_checkpoint", step] for step in (1, 2)), ["ignore"]]
    membership = PretendMembership(bench)
    await membership.attempts.claim_assigned()
    await until(lambda: len(_checkpoints(bench)) == 2)
    return membership


def _checkpoints(bench: Bench) -> list[CheckpointCommitted]:
    return [event for event in bench.repository.events.get(1, []) if isinstance(event, CheckpointCommitted)]


async def test_a_drain_waits_for_the_copies_of_checkpoints_before_it_gives_up(
    membership: PretendMembership,
) -> None:
    await membership.drain(asyncio.Event())
    repository = membership.bench.repository
    assert repository.copied[-1] == "job-1/0/0000000002-1"
    assert repository.endings[1].code == "drained", "the end is written, so that no restart is counted"
    assert membership.is_gone


async def test_an_operator_who_does_not_wait_ends_the_copies_but_the_ends_are_written(
    membership: PretendMembership, put: Event
) -> None:
    put.set()
    killed = asyncio.Event()
    drained = asyncio.create_task(membership.drain(killed))
    # Its run was killed, and waits for the copy.
    await until(lambda: membership.bench.pids == [])
    assert not drained.done()
    killed.set()
    await asyncio.wait_for(drained, 10)
    assert membership.bench.repository.endings[1].code == "drained"


def test_each_manager_of_services_waits_for_as_long_as_a_worker_may_take() -> None:
    timing = Timing()
    needed = seconds_to_end(timing.grace, timing.upload_grace)
    assert needed == seconds_to_end() == seconds_to_end_in({})
    others = 10 + 15 + 10 + 5  # `up` stops scheduler, serving, web and broker before and after the workers
    for file, pattern, seconds in (
        ("docker-compose.yml", r"stop_grace_period: (\d+)s", needed),
        ("deploy/systemd/trainyard-worker@.service", r"TimeoutStopSec=(\d+)", needed),
        ("deploy/systemd/trainyard.service", r"TimeoutStopSec=(\d+)", needed + others),
        ("deploy/slurm/worker.sbatch", r"--signal=TERM@(\d+)", needed),
    ):
        found = re.findall(pattern, (ROOT / file).read_text())
        assert [int(one) >= seconds for one in found] == [True], f"{file}: {seconds:g} are needed"


def test_the_guides_name_the_time_that_a_worker_may_take() -> None:
    for name, sentence in (
        ("16-slurm", "It takes work until {:g} seconds before"),
        ("16-slurm", "It needs up to {:g}."),
        ("5-troubleshooting", "{:g} s by default"),
    ):
        text = " ".join((ROOT / "docs" / "guide" / f"{name}.md").read_text().split())
        assert sentence.format(seconds_to_end()) in text


def test_a_worker_with_longer_times_is_given_longer_by_up() -> None:
    longer = {"TRAINYARD_NODE_GRACE": "300", "TRAINYARD_NODE_UPLOAD_GRACE": "100"}
    assert seconds_to_end_in(longer) == seconds_to_end(300, 100) == seconds_for_runs(300, 100) + 10
    assert seconds_to_end_in({"TRAINYARD_NODE_GRACE": "long"}) == seconds_to_end()
