"""Limits for tasks that read uploads: the kernel's, the measured ones, and their messages."""

import json
import signal
from dataclasses import replace
from typing import Any

import pytest

from jobs.kinds.profile.payload import ProfileTask
from jobs.kinds.register.payload import RegisterTask
from jobs.messages.events import Failed
from jobs.states import Outcome
from tests.supervise.conftest import Bench
from workers.supervise.limits.limits import TaskLimits
from workers.system.usage import Usage

GIB = 2**30
LIMITS = TaskLimits()


def test_a_limit_is_read_from_the_environment() -> None:
    assert TaskLimits.from_environment({"TRAINYARD_LIMIT_MEMORY_GIB": "1.5"}).memory_gib == 1.5
    for text in ("0", "-1", "much", "inf", "nan"):
        with pytest.raises(ValueError, match=f"TRAINYARD_LIMIT_PROCESSES='{text}': give a number above 0"):
            TaskLimits.from_environment({"TRAINYARD_LIMIT_PROCESSES": text})


@pytest.mark.parametrize(
    ("usage", "seconds", "code", "words"),
    [
        (Usage(1, 1), 1801.0, "time_limit", "took longer than 1800 s"),
        (Usage(1, 1, cpu_seconds=1801), 9.0, "cpu_limit", "used more than 1800 s of CPU time"),
        (Usage(1, 1, processes=65), 9.0, "process_limit", "started more than 64 processes"),
    ],
)
def test_a_task_above_a_limit_fails_with_the_limit_and_its_setting(
    usage: Usage, seconds: float, code: str, words: str
) -> None:
    ending = LIMITS.exceeded(usage, seconds=seconds)
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.FAILED, code)
    assert ending.message.startswith(f"this task {words}: ")
    assert "raise TRAINYARD_LIMIT_" in ending.message


def test_a_task_within_its_limits_goes_on() -> None:
    assert LIMITS.exceeded(Usage(99, 1, cpu_seconds=1, processes=2), seconds=1) is None


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (-signal.SIGXCPU, "cpu_limit"),
        (-signal.SIGSEGV, "damaged_file"),
        (-signal.SIGABRT, "damaged_file"),
        (-signal.SIGKILL, "runner_killed"),
        (1, "runner_died"),
    ],
)
def test_the_death_of_a_limited_runner_has_its_cause(status: int, code: str) -> None:
    assert LIMITS.end_of_process(status).code == code


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("out_of_memory", "this task used more than 4 GiB of memory, "),
        ("file_limit", "this task wrote a file of more than 8 GiB: "),
        ("bad_data", "no column"),
    ],
)
def test_a_refused_allocation_is_reported_as_the_limit(code: str, words: str) -> None:
    ending = LIMITS.end_of_failure(Failed(time=0, code=code, message="no column", traceback=""), 4 * GIB)
    assert ending.code == code
    assert ending.message.startswith(words)


@pytest.mark.parametrize(("own_user", "threads"), [(True, 64 * 64), (False, None)])
def test_the_kernel_counts_threads_only_of_a_user_that_no_other_runner_has(
    own_user: bool, threads: int | None
) -> None:
    limits = LIMITS.process_limits(memory=GIB, own_user=own_user)
    assert (limits.memory, limits.cpu_seconds, limits.file_bytes) == (GIB, 1800, 8 * GIB)
    assert limits.threads == threads


def test_only_tasks_that_read_uploads_are_limited() -> None:
    assert not ProfileTask(folder="f", source="bundled").reads_foreign_file()
    assert ProfileTask(folder="f", source="csv").reads_foreign_file()
    assert RegisterTask(folder="f", model="m", digest="d", foreign=True).reads_foreign_file()
    assert not RegisterTask(folder="f", model="m", digest="d").reads_foreign_file()


@pytest.mark.parametrize("steps", [[["eat", 150], ["hold"]], [["fail", "out_of_memory"]]])
async def test_an_upload_that_needs_too_much_memory_fails_with_the_limit(
    bench: Bench, steps: list[list[Any]]
) -> None:
    bench.repository.tasks[1] = ProfileTask(
        folder="replaced", source="csv", path="upload.csv", bundled=json.dumps(steps)
    )
    bench.node = replace(bench.node, limits=TaskLimits(memory_gib=0.1))
    ending = await bench.run()
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "out_of_memory")
    assert "this task used more than 0.1 GiB of memory" in ending.message


@pytest.mark.parametrize(
    ("cap", "remedy"),
    [
        (
            2 * GIB,
            "Have the operator raise TRAINYARD_LIMIT_MEMORY_GIB on the workers, and read the file again",
        ),
        (GIB, "Have the operator start the worker with fewer slots"),
    ],
)
def test_the_remedy_for_too_little_memory_is_that_of_the_smaller_limit(cap: int, remedy: str) -> None:
    message = TaskLimits(memory_gib=2.0).out_of_memory(cap).message
    assert remedy in message
    assert "or upload one that needs less: fewer columns" in message


async def test_a_runner_with_limits_serves_no_other_task(bench: Bench) -> None:
    bench.repository.tasks[1] = ProfileTask(
        folder="replaced", source="csv", path="upload.csv", bundled=json.dumps([["points", 0, 5]])
    )
    ending = await bench.run()
    assert ending is not None
    assert ending.outcome is Outcome.COMPLETED
    assert bench.pids == []


@pytest.mark.parametrize("source", ["csv", "bundled"])
async def test_a_runner_gets_limits_with_a_task_that_reads_an_upload_and_with_no_other(
    bench: Bench, source: Any
) -> None:
    script = json.dumps([["limits"]])
    bench.repository.tasks[1] = ProfileTask(folder="replaced", source=source, path="a.csv", bundled=script)
    await bench.run()
    sent = json.loads(bench.repository.lines(1)[0].line)
    assert sent is None if source == "bundled" else sent["file_bytes"] == 8 * GIB
