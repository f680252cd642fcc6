"""One attempt on a fake runner, with a repository that may be unavailable."""

import json
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jobs.errors import QuotaReached, StaleFence
from jobs.messages.events import (
    ArtifactWritten,
    CheckpointCommitted,
    Metric,
    Started,
    Warned,
)
from jobs.states import Outcome
from jobs.store import StoredFile
from tests.supervise.conftest import SECRET, Bench, until
from workers.supervise.attempt import attempt_gpus
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import DatabaseUnavailable


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


async def test_a_run_whose_gpu_jax_cannot_use_is_placed_again_and_its_worker_is_told(bench: Bench) -> None:
    reasons: list[str] = []
    bench.node = replace(bench.node, gpu_failed=reasons.append)
    failed = {"type": "failed", "time": 1.0, "code": "no_gpu", "message": "this run needs a GPU"}
    ending = await bench.run(["raw", json.dumps(failed)], attempt=1)
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.LOST, "no_gpu")
    assert reasons == ["this run needs a GPU"]


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
