"""How an attempt ends: yields, losses, failures, limits and a full disk."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jobs import lease_clock
from jobs.errors import StaleFence, StaleState
from jobs.messages.control import Start
from jobs.messages.events import (
    Progress,
)
from jobs.messages.task import Task
from jobs.states import Desired, Outcome
from tests.supervise.conftest import Bench, until
from workers.confinement.isolation.access import RunnerAccess
from workers.supervise.attempt import runner_turn
from workers.supervise.attempt.hand_over import hand_over
from workers.supervise.attempt.memory import IN_MEMORY_VARIABLE, in_memory_bytes
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.pool.launcher import SpawnLauncher


async def test_ending_an_attempt_kills_its_runner(bench: Bench) -> None:
    run = bench.start(["ignore"])
    await until(lambda: bench.repository.events.get(1))
    run.supervisor.end(AttemptEnd.lease_lost())
    await run.ended()
    assert bench.pids == []
    assert bench.repository.endings[1].code == "lease_lost"


@pytest.mark.parametrize(
    ("desired", "outcome"),
    [(Desired.PAUSED, Outcome.PAUSED), (Desired.STOPPED, Outcome.STOPPED), (Desired.KILLED, Outcome.KILLED)],
)
async def test_the_owners_desired_state_is_applied(bench: Bench, desired: Desired, outcome: Outcome) -> None:
    run = bench.start(["hold"])
    await until(lambda: bench.repository.events.get(1))
    run.supervisor.lease_renewed(lease_clock.now(), desired)
    await run.ended()
    assert bench.repository.endings[1].outcome is outcome
    assert bench.repository.endings[1].error is None


async def test_a_pause_that_is_revoked_ends_the_attempt_for_a_resume(bench: Bench) -> None:
    run = bench.start(["hold"])
    await until(lambda: bench.repository.events.get(1))
    for desired in (Desired.PAUSED, Desired.RUNNING):
        run.supervisor.lease_renewed(lease_clock.now(), desired)
    await run.ended()
    assert (bench.repository.endings[1].outcome, bench.repository.endings[1].code) == (
        Outcome.LOST,
        "drained",
    )


async def test_a_runner_that_does_not_yield_in_time_is_killed_with_the_requested_outcome(
    bench: Bench,
) -> None:
    bench.with_timing(grace=0.2)
    run = bench.start(["ignore"])
    await until(lambda: bench.repository.events.get(1))
    run.supervisor.lease_renewed(lease_clock.now(), Desired.PAUSED)
    await run.ended()
    assert bench.repository.endings[1].outcome is Outcome.PAUSED
    assert bench.repository.endings[1].code == "grace_over"
    assert bench.pids == []


async def test_a_draining_node_ends_its_runs_so_that_others_resume_them(bench: Bench) -> None:
    run = bench.start(["hold"])
    await until(lambda: bench.repository.events.get(1))
    run.supervisor.drain()
    await run.ended()
    assert (bench.repository.endings[1].outcome, bench.repository.endings[1].code) == (
        Outcome.LOST,
        "drained",
    )


async def test_a_runner_that_dies_is_a_loss_with_its_cause_and_all_its_points(bench: Bench) -> None:
    ending = await bench.run(["points", 0, 50], ["die"])
    assert ending is not None
    assert ending.outcome is Outcome.LOST
    assert "SIGSEGV" in ending.message
    assert bench.repository.losses() == list(range(50))
    assert bench.pids == []


async def test_a_failure_has_its_code_and_its_runner_is_not_reused(bench: Bench) -> None:
    ending = await bench.run(["fail", "diverged"])
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "diverged")
    assert bench.pids == []


async def test_a_task_that_fails_on_a_full_disk_is_retried(bench: Bench) -> None:
    ending = await bench.run(["fail", "disk_full"])
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.LOST, "disk_full")


async def test_a_run_above_its_memory_cap_is_ended_with_cap_and_peak_named(bench: Bench) -> None:
    bench.with_memory(100 * 2**20)
    ending = await bench.run(["points", 0, 5], ["eat", 150], ["hold"])
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "out_of_memory")
    assert "cap of 0.10 GiB" in ending.message
    assert bench.repository.losses() == list(range(5))


@pytest.mark.parametrize(("memory_limit", "limit"), [(None, 2**28), (7, 7), (0, 0)])
async def test_a_task_has_the_size_up_to_which_its_run_keeps_rows_in_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, memory_limit: int | None, limit: int
) -> None:
    bench.node = replace(bench.node, memory_per_slot=2**30, in_memory_bytes=memory_limit)
    tasks: list[Task] = []

    def recorded(task: Task, folder: Path, access: RunnerAccess | None) -> Start:
        tasks.append(task)
        return hand_over(task, folder, access)

    monkeypatch.setattr(runner_turn, "hand_over", recorded)
    await bench.run([])
    assert [task.in_memory_bytes for task in tasks] == [limit]


def test_a_size_of_rows_in_memory_that_is_no_number_is_refused() -> None:
    assert in_memory_bytes({}) is None
    assert in_memory_bytes({IN_MEMORY_VARIABLE: "0"}) == 0
    with pytest.raises(ValueError, match="TRAINYARD_IN_MEMORY_BYTES='2 GiB': give a number of bytes"):
        in_memory_bytes({IN_MEMORY_VARIABLE: "2 GiB"})


async def test_a_stalled_run_is_killed_and_its_stack_traces_are_logged(bench: Bench) -> None:
    bench.with_timing(silence=1.0, stack_dump=2.0)
    ending = await bench.run(["points", 0, 5], ["hang"])
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.LOST, "hung")
    assert any("do_hang" in line.line for line in bench.repository.lines())


async def test_a_suspended_process_counts_as_stalled(bench: Bench) -> None:
    bench.with_timing(silence=0.3)
    run = bench.start(["hold"])
    await until(lambda: any(isinstance(event, Progress) for event in bench.repository.events.get(1, [])))
    os.kill(bench.pids[0], signal.SIGSTOP)
    await run.ended()
    assert bench.repository.endings[1].code == "hung"
    assert bench.pids == []


async def test_a_full_disk_ends_the_attempt_as_lost(bench: Bench) -> None:
    run = bench.start(["hold"])
    await until(lambda: bench.repository.events.get(1))

    def full(line: bytes) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workers.supervise.events.spool.Spool.append", lambda _self, line: full(line))
        await run.ended()
    assert (bench.repository.endings[1].outcome, bench.repository.endings[1].code) == (
        Outcome.LOST,
        "no_space",
    )


async def test_an_end_that_the_jobs_state_refuses_is_left_to_the_reaper(bench: Bench) -> None:
    run = bench.start(["hold"])
    await until(lambda: bench.repository.events.get(1))
    bench.repository.fault = StaleState("it cannot")
    run.supervisor.end(AttemptEnd(Outcome.KILLED))
    await until(lambda: bench.pids == [])
    bench.repository.fault = StaleFence("reaped")
    await run.ended()
    assert bench.repository.endings == {}


async def test_a_result_that_cannot_be_recorded_ends_the_attempt_with_the_cause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner with user code may report what no rule foresees."""
    finish, tried = bench.repository.finish, []

    async def of_results(attempt: int, ending: AttemptEnd) -> None:
        tried.append(ending.outcome)
        if len(tried) == 1:
            raise KeyError("outputs")
        await finish(attempt, ending)

    monkeypatch.setattr(bench.repository, "finish", of_results)
    run = bench.start(["hold"])
    await until(lambda: bench.repository.events.get(1))
    run.supervisor.end(AttemptEnd(Outcome.COMPLETED))
    await run.ended()
    assert tried == [Outcome.COMPLETED, Outcome.LOST]
    assert "KeyError: 'outputs'" in bench.repository.endings[1].message


async def test_a_kill_takes_effect_while_the_runner_is_being_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def never(*_: object) -> object:
        asked.set()
        return await asyncio.Event().wait()

    monkeypatch.setattr(SpawnLauncher, "launch", never)
    run = bench.start(["hold"])
    await asyncio.wait_for(asked.wait(), 10)
    run.supervisor.end(AttemptEnd(Outcome.KILLED))
    await run.ended()
    assert bench.repository.endings[1].outcome is Outcome.KILLED
    assert bench.pids == []
