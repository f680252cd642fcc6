"""One attempt on a fake runner, with a repository that may be unavailable."""

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jobs.errors import QuotaReached, StaleFence, StaleState
from jobs.messages.control import Start
from jobs.messages.events import (
    ArtifactWritten,
    CheckpointCommitted,
    Metric,
    Progress,
    Started,
    Warned,
)
from jobs.messages.task import Task
from jobs.states import Desired, Outcome
from jobs.store import StoredFile
from tests.supervise.conftest import SECRET, Bench, until
from workers.confinement.isolation.access import RunnerAccess
from workers.supervise.attempt import attempt_gpus, runner_turn
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.hand_over import hand_over
from workers.supervise.attempt.memory import IN_MEMORY_VARIABLE, in_memory_bytes
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.pool.launcher import SpawnLauncher


async def test_a_run_is_recorded_in_order_and_completes(bench: Bench) -> None:
    ending = await bench.run(["points", 0, 500])
    assert ending is not None
    assert ending.outcome is Outcome.COMPLETED
    assert ending.result is not None
    assert bench.repository.losses() == list(range(500))
    assert any(isinstance(event, Started) for event in bench.repository.events[1])
    assert not (bench.node.attempts / "1").exists()


async def test_events_are_committed_in_batches_under_load(bench: Bench) -> None:
    await bench.run(["points", 0, 2000])
    assert len(bench.repository.commits) < 200


async def test_a_runner_serves_the_next_attempt_of_its_root_job_and_no_other(bench: Bench) -> None:
    first = await bench.run(["points", 0, 1], attempt=1, root=7)
    second = await bench.run(["points", 0, 1], attempt=2, root=7)
    stranger = await bench.run(["points", 0, 1], attempt=3, root=8)
    assert first and second and stranger
    assert first.result == second.result
    assert stranger.result != first.result


async def test_printed_lines_become_log_lines_without_secrets(bench: Bench) -> None:
    await bench.run(
        ["print", f"the key is {SECRET}"],
        ["complain", "W0000 something"],
        ["print", "postgres://me:hunter22@db/x"],
    )
    lines = {line.line: line for line in bench.repository.lines()}
    assert lines["the key is •••"].source == "stdout"
    assert lines["W0000 something"].level == "warning"
    assert "postgres://me:•••@db/x" in lines


async def test_a_runners_environment_contains_no_secret(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_DATABASE_URL", "postgres://me:hunter22@db/x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter22")
    monkeypatch.setenv("JAX_SOME_TOKEN", "hunter22")
    await bench.run(["environment"])
    seen = json.loads(bench.repository.lines()[0].line)
    assert seen["KERAS_BACKEND"] == "jax"
    assert not any("hunter22" in value for value in seen.values())
    assert not any(name.startswith(("TRAINYARD", "DJANGO")) for name in seen)


async def test_a_job_that_trains_on_the_cpu_of_a_machine_with_gpus_has_a_warning(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.node = replace(bench.node, no_gpu="JAX's CUDA plugin is not installed.")
    await bench.run(["points", 0, 1], attempt=1)
    monkeypatch.setattr(attempt_gpus, "needs_jax", lambda _task: True)
    await bench.run(["points", 0, 1], attempt=2)
    warned = {
        pk: [event for event in bench.repository.events[pk] if isinstance(event, Warned)] for pk in (1, 2)
    }
    assert warned[1] == [], "the task does not need JAX"
    assert [(w.code, w.message) for w in warned[2]] == [("no_gpu", "JAX's CUDA plugin is not installed.")]


async def test_an_attempt_has_its_gpus_to_itself_until_it_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_gpus, "needs_jax", lambda _task: True)
    bench.node = replace(bench.node, devices=Devices({"gpu:2": "2", "gpu:3": "3"}))
    first = bench.start(["environment"], ["hang"], attempt=1)
    await until(lambda: bench.repository.lines(1))
    await bench.run(["environment"], attempt=2)
    first.supervisor.end(AttemptEnd(Outcome.KILLED))
    await first.ended()
    await bench.run(["environment"], attempt=3, root=2)
    seen = [json.loads(bench.repository.lines(pk)[0].line)["CUDA_VISIBLE_DEVICES"] for pk in (1, 2, 3)]
    assert seen == ["2", "3", "2"]


async def test_invalid_event_lines_are_logged_and_ignored(bench: Bench) -> None:
    ending = await bench.run(["raw", "{nonsense"], ["raw", '{"type": "metric"}'], ["points", 0, 1])
    assert ending is not None
    assert ending.outcome is Outcome.COMPLETED
    assert len([line for line in bench.repository.lines() if "is invalid" in line.line]) == 2
    assert bench.repository.losses() == [0]


async def test_a_nul_in_a_text_of_a_runner_is_replaced(bench: Bench) -> None:
    """PostgreSQL would refuse it, and the whole attempt with it."""
    log = {"type": "log", "time": 1.0, "line": "a\0\0b\\u0000c"}
    result = {"type": "result", "time": 2.0, "result": {"labels": ["\0", "x\\\0"]}}
    ending = await bench.run(["raw", json.dumps(log)], ["raw", json.dumps(result)])
    assert ending is not None
    assert ending.result == {"labels": ["\ufffd", "x\\\ufffd"]}
    assert [line.line for line in bench.repository.lines()] == ["a\ufffd\ufffdb\\u0000c"]


async def test_an_artifact_is_in_the_store_before_it_is_recorded(bench: Bench) -> None:
    await bench.run(["artifact", "report.txt", "hello"])
    stored = bench.repository.files["report.txt"]
    assert bench.repository.store.path(stored.digest).read_text() == "hello"


async def test_a_run_whose_output_exceeds_the_disk_quota_fails_with_the_reason(bench: Bench) -> None:
    async def refuse(attempt: int, path: Path) -> StoredFile:
        raise QuotaReached("Files of project yard use 9 bytes of its 9 bytes of disk.")

    bench.repository.store_file = refuse  # type: ignore[method-assign]
    await bench.run(["artifact", "report.txt", "hello"])
    ending = bench.repository.endings[1]
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "quota_reached")
    assert "of its 9 bytes" in ending.message


async def test_files_outside_the_attempts_folder_are_refused(bench: Bench) -> None:
    await bench.run(["claim_artifact", "../../../etc/passwd"], ["claim_artifact", "/etc/passwd"])
    assert not [event for event in bench.repository.events[1] if isinstance(event, ArtifactWritten)]
    assert len([line for line in bench.repository.lines() if "not a file of this run" in line.line]) == 2


async def test_a_link_in_the_attempts_folder_is_not_stored(bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret.key"
    secret.write_text("secret")
    await bench.run(["link", "report.txt", str(secret)], ["claim_artifact", "report.txt"])
    assert bench.repository.files == {}
    assert any("not a file of this run" in line.line for line in bench.repository.lines())


async def test_a_checkpoint_of_another_job_is_refused(bench: Bench) -> None:
    other = bench.node.checkpoints / "job-2" / "1"
    other.mkdir(parents=True)
    event = CheckpointCommitted(
        time=1.0, folder=str(other), step=1, epoch=1, manifest="0" * 64, bytes=1
    ).model_dump_json()
    await bench.run(["raw", event])
    assert not [event for event in bench.repository.events[1] if isinstance(event, CheckpointCommitted)]
    assert any("job's checkpoints" in line.line for line in bench.repository.lines())


async def test_a_runner_is_notified_of_its_recorded_checkpoints(bench: Bench) -> None:
    await bench.run(["checkpoint", 3], ["checkpoint", 6], ["await_recorded", 2])
    (line,) = [line.line for line in bench.repository.lines() if line.line.startswith("recorded")]
    assert line == "recorded ['job-1/3-1-0', 'job-1/6-1-0']"


async def test_checkpoints_are_named_relative_to_the_stores_root(bench: Bench) -> None:
    await bench.run(["checkpoint", 3])
    [checkpoint] = [event for event in bench.repository.events[1] if isinstance(event, CheckpointCommitted)]
    assert checkpoint.folder == "job-1/3-1-0"


async def test_the_use_of_cpu_and_memory_is_charted(bench: Bench) -> None:
    await bench.run(["slowly", 0, 75, 0.02])
    names = {
        p[0]
        for e in bench.repository.events[1]
        if isinstance(e, Metric) and e.x == "second"
        for p in e.points
    }
    assert names == {"system/cpu_percent", "system/memory_mib"}


async def test_without_a_database_the_run_continues_and_every_point_is_recorded_once(bench: Bench) -> None:
    run = bench.start(["slowly", 0, 40, 0.01], ["points", 40, 60])
    await until(lambda: bench.repository.losses())
    bench.repository.fault = DatabaseUnavailable("away")
    tries = bench.repository.tries
    await until(lambda: bench.repository.tries > tries + 3)
    bench.repository.fault, bench.repository.applied_but_lost = None, 3
    await run.ended()
    assert bench.repository.losses() == list(range(60))
    assert bench.repository.endings[1].outcome is Outcome.COMPLETED


async def test_a_stale_fence_kills_the_runner_and_writes_nothing_more(bench: Bench) -> None:
    run = bench.start(["ignore"])
    await until(lambda: bench.repository.events.get(1))
    [pid] = bench.pids
    bench.repository.fault = StaleFence("not yours")
    await run.ended()
    assert not psutil.pid_exists(pid)
    assert bench.repository.endings == {}


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
    run.supervisor.lease_renewed(asyncio.get_running_loop().time(), desired)
    await run.ended()
    assert bench.repository.endings[1].outcome is outcome
    assert bench.repository.endings[1].error is None


async def test_a_pause_that_is_revoked_ends_the_attempt_for_a_resume(bench: Bench) -> None:
    run = bench.start(["hold"])
    await until(lambda: bench.repository.events.get(1))
    for desired in (Desired.PAUSED, Desired.RUNNING):
        run.supervisor.lease_renewed(asyncio.get_running_loop().time(), desired)
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
    run.supervisor.lease_renewed(asyncio.get_running_loop().time(), Desired.PAUSED)
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


@pytest.mark.parametrize(("given", "limit"), [(None, 2**28), (7, 7), (0, 0)])
async def test_a_task_has_the_size_up_to_which_its_run_keeps_rows_in_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, given: int | None, limit: int
) -> None:
    bench.node = replace(bench.node, memory_per_slot=2**30, in_memory_bytes=given)
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
    """A runner with code of users may report what no rule foresees."""
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
