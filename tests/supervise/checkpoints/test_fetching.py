"""A task that may resume finds its checkpoint on this machine, or the reason why there is none."""

import asyncio
import errno
import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import StoreUnavailable
from jobs.messages.task import CheckpointFolder, EarlierTraining
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask
from jobs.spec.sections.search import Objective
from jobs.store import ObjectStore
from jobs.store.checkpoint_copies import CheckpointCopies
from tests.jobs.yard import spec
from workers.supervise.attempt.prepare import with_reasons
from workers.supervise.checkpoints import archive, fetching
from workers.supervise.checkpoints.channel import TRANSFERS, CopyChannel
from workers.supervise.checkpoints.fetching import fetch_checkpoints


class Machines:
    """The machine that wrote the checkpoints, and the one that resumes."""

    def __init__(self, place: Path) -> None:
        store = ObjectStore(f"memory://{place}", place / "cache")
        assert store.checkpoint_copies is not None
        self.copies: CheckpointCopies = store.checkpoint_copies
        self.there, self.here, self.place = place / "there", place / "here", place
        self.here.mkdir()
        self.channel = CopyChannel(self.copies, self.here)

    def write(self, step: int, *, root: Path | None = None, copied: bool = True) -> CheckpointFolder:
        folder = f"job-1/{step:010d}-1"
        path = (root or self.there) / folder
        path.mkdir(parents=True)
        (path / "state.json").write_text(content := json.dumps({"step": step}))
        part = {"bytes": len(content), "sha256": hashlib.sha256(content.encode()).hexdigest()}
        body = json.dumps({"step": step, "files": {"state.json": part}})
        (path / "manifest.json").write_text(body)
        manifest = hashlib.sha256(body.encode()).hexdigest()
        if copied:
            archive.pack(root or self.there, folder, manifest, self.place / "archive")
            self.copies.put(folder, self.place / "archive")
        return CheckpointFolder(
            folder=str(self.here / folder),
            manifest=manifest,
            step=step,
            epoch=step,
            copied=copied,
            worker="a",
        )

    async def fetch(self, *candidates: CheckpointFolder) -> str:
        """Fetch for a training. Return the reason why it cannot resume."""
        task = TrainTask(
            folder="f", spec=spec(), dataset=None, retrain=None, model_name="m", resume=candidates,
            objective=Objective(metric="val_loss", direction="min"), earlier=EarlierTraining(epoch=9),
        )  # fmt: skip
        done = with_reasons(task, await fetch_checkpoints(task, self.channel))
        assert isinstance(done, TrainTask)
        assert done.earlier is not None
        return done.earlier.reason

    def has(self, step: int) -> bool:
        return (self.here / f"job-1/{step:010d}-1").is_dir()


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    monkeypatch.setattr(fetching, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(fetching, "LONGEST_PAUSE", 0.01)
    return Machines(tmp_path)


async def test_only_the_newest_checkpoint_is_downloaded(machines: Machines) -> None:
    newest, before = machines.write(9), machines.write(8)
    assert await machines.fetch(newest, before) == ""
    assert (machines.has(9), machines.has(8)) == (True, False)
    assert archive.is_intact(machines.here, "job-1/0000000009-1", newest.manifest)
    assert [path.name for path in machines.here.iterdir()] == ["job-1"]


async def test_a_checkpoint_that_is_here_is_not_downloaded(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = machines.write(9, root=machines.here, copied=False)
    monkeypatch.setattr(machines.copies, "get", None)
    assert await machines.fetch(here) == ""


async def test_a_damaged_one_here_is_replaced_by_its_copy(machines: Machines) -> None:
    newest = machines.write(9, root=machines.here)
    (Path(newest.folder) / "state.json").write_text("{}")
    assert await machines.fetch(newest) == ""
    assert archive.is_intact(machines.here, "job-1/0000000009-1", newest.manifest)


async def test_a_half_copy_leads_to_the_checkpoint_before_it(machines: Machines) -> None:
    newest, before = machines.write(9), machines.write(8)
    machines.copies.get("job-1/0000000009-1", half := machines.place / "half")
    half.write_bytes(half.read_bytes()[:1500])
    machines.copies.put("job-1/0000000009-1", half)
    assert await machines.fetch(newest, before) == ""
    assert (machines.has(9), machines.has(8)) == (False, True)


async def test_without_any_the_reasons_are_named(machines: Machines) -> None:
    only_there, gone = machines.write(9, copied=False), machines.write(8)
    machines.copies.erase("job-1/0000000008-1")
    assert await machines.fetch(only_there, gone) == (
        "the checkpoint of epoch 9 is only on worker a, which had not copied it to the artifact store "
        "before it stopped; the checkpoint of epoch 8 is missing in the artifact store"
    )


async def test_a_store_that_is_away_never_leads_to_a_start_from_the_beginning(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, tries = machines.write(9), []

    def fail(*_: Any) -> None:
        tries.append(1)
        raise ConnectionError("no route to the store")

    monkeypatch.setattr(machines.copies, "get", fail)
    with pytest.raises(StoreUnavailable, match="no route to the store"):
        await machines.fetch(newest)
    assert len(tries) == fetching.TRIES


async def test_a_full_disk_is_told_as_one_and_not_as_a_silent_store(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = machines.write(9)

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(machines.copies, "get", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        await machines.fetch(newest)
    assert not isinstance(caught.value, StoreUnavailable)


async def test_a_checkpoint_that_is_here_is_used_while_all_transfers_hang(machines: Machines) -> None:
    here, answered = machines.write(9, root=machines.here), threading.Event()
    began = threading.Barrier(TRANSFERS + 1, timeout=5)

    def hang() -> None:
        began.wait()
        answered.wait()

    hanging = [asyncio.create_task(machines.channel.run(hang)) for _ in range(TRANSFERS)]
    await asyncio.to_thread(began.wait)
    try:
        async with asyncio.timeout(5):
            assert await machines.fetch(here) == ""
    finally:
        answered.set()
        await asyncio.gather(*hanging)


async def test_each_execution_of_a_trial_has_its_own_reason(machines: Machines) -> None:
    here, gone = machines.write(9, root=machines.here), machines.write(8, copied=False)
    plans = tuple(
        ExecutionPlan(execution=number, seed=1, checkpoints=(candidate,), earlier=EarlierTraining(epoch=9))
        for number, candidate in ((1, here), (2, gone))
    )
    trial = TrialPlan(number=3, values={}, spec=spec(), executions=plans)
    task = TrialTask(
        folder="f", spec=spec(), dataset=None, trials=(trial,),
        objective=Objective(metric="val_loss", direction="min"),
    )  # fmt: skip
    done = with_reasons(task, await fetch_checkpoints(task, machines.channel))
    assert isinstance(done, TrialTask)
    reasons = [plan.earlier.reason for plan in done.trials[0].executions if plan.earlier is not None]
    assert reasons[0] == ""
    assert "the checkpoint of epoch 8 is only on worker a" in reasons[1]
