"""Tasks with hostile code on real runners, at every level of sandbox that this machine offers."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.sandbox import Guarantee, Level, SandboxRecord
from tests.sandbox.conftest import CASES, Cases, as_user, cases, users
from tests.supervise.processes.sandboxed_runs import left_of
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.isolation.view import CODE_ROOT

__all__ = ["cases", "users"]
MODULE = "tests.supervise.processes.sandboxed_runs"
Found = dict[str, Any]
_found: dict[tuple[str, Level], Found] = {}


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def found(request: pytest.FixtureRequest, cases: Cases, users: RunnerUsers) -> Found:
    worker, level = request.param
    cases.require(worker, level)  # for each level: one run finds all, also those that the machine lacks
    if (worker, level) not in _found:
        _found.update({(worker, Level(name)): each for name, each in run(worker, users).items()})
    if "missing" in _found[worker, level]:
        pytest.fail(_found[worker, level]["missing"])
    return _found[worker, level]


def run(worker: str, users: RunnerUsers) -> dict[str, Found]:
    """Return the findings of all levels; a level that the machine does not offer has only the reason."""
    found: dict[str, Found]
    if worker == "user":
        found = json.loads(as_user(MODULE, *Level, users=users))
    else:
        ended = subprocess.run(
            [sys.executable, "-m", MODULE, *Level], cwd=CODE_ROOT, capture_output=True, text=True,
            check=False, timeout=240,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        found = json.loads(ended.stdout)
    return found


def record(found: Found) -> SandboxRecord:
    return SandboxRecord.model_validate(found["work"]["sandbox"])


def test_code_gets_its_files_and_what_it_writes_is_kept(found: Found) -> None:
    files, changeable = json.loads(found["work"]["lines"][0])
    assert found["work"]["outcome"] == "completed", found["work"]
    assert files == {"package/model.py": "def build_model(hp): ...\n"}
    assert changeable == (not record(found).holds(Guarantee.WRITE))
    assert len(found["stored"]) == 1
    (checkpoint,) = found["checkpoints"]
    assert re.fullmatch("job-1/own-[0-9a-f]+/3-1-0", checkpoint)
    assert checkpoint in found["checkpoint folders"]
    assert found["work"]["lines"][3] == json.dumps(["program"])


def test_code_reads_no_keys_no_database_and_no_artifacts_of_others(found: Found) -> None:
    readable = json.loads(found["work"]["lines"][1])
    assert bool(readable) == (not record(found).holds(Guarantee.READ)), readable


def test_code_connects_to_no_service_of_the_machine(found: Found) -> None:
    assert (found["work"]["lines"][2] == "refused") == record(found).holds(Guarantee.NETWORK)


def test_a_model_beside_a_task_has_its_file_and_its_code_and_nothing_of_the_task(found: Found) -> None:
    run = found["model beside"]
    assert run["outcome"] == "completed", run
    # Two processes print them.
    lines = [json.loads(line) for line in run["lines"]]
    of_model, ((connects, *readable), code) = sorted(lines, key=lambda line: line[1] is None)
    assert of_model == ["def build_model(hp): ...\n", ["model.py"]]
    assert code is None
    holds = SandboxRecord.model_validate(run["sandbox"]).holds
    assert bool(connects) == (not holds(Guarantee.NETWORK))
    assert any(readable) == (not holds(Guarantee.READ)), readable


def test_a_task_gets_the_cause_of_the_end_of_its_model(found: Found) -> None:
    (line,) = (line for line in found["model that exits"]["lines"] if line.endswith(", null]"))
    answers, _ = json.loads(line)
    assert answers == ["its process ended with status 3; its last line: bye"]


def test_the_sandbox_that_a_run_had_is_recorded_with_its_attempt(found: Found) -> None:
    assert record(found).network is False
    assert record(found).limits.processes_of_all == 20
    stronger = [state.level for state in record(found).missing]
    recorded = record(found).level
    assert isinstance(recorded, Level)
    assert stronger == [level for level in Level if level.strength > recorded.strength]


def test_a_runner_is_reused_for_its_own_job_and_code_alone(found: Found) -> None:
    reused = [found["reused"], found["reused by another job"], found["reused for other code"]]
    assert reused == [True, False, False]


def test_each_runner_of_a_job_writes_checkpoints_of_its_own_and_uses_the_programs_of_the_others(
    found: Found,
) -> None:
    run = found["of other code"]
    assert run["outcome"] == "completed", run
    assert json.loads(run["lines"][0])[0] == {"package/model.py": "def build_model(hp): ...\n"}
    assert run["lines"][1:] == ["recorded ['9-1-0']", '["program"]']
    assert sum(path.endswith("/9-1-0") for path in found["checkpoint folders"]) == 1


def test_a_task_that_needs_a_stronger_level_does_not_start(found: Found) -> None:
    if record(found).level is Level.BUBBLEWRAP:
        pytest.skip("there is no stronger one")
    refused = found["refused"]
    assert (refused["outcome"], refused["code"], refused["sandbox"]) == ("lost", "sandbox_refused", None)
    assert refused["lines"] == []


@pytest.mark.parametrize(
    ("run", "code", "words"),
    [
        ("exit", "code_exited", "status 0"),
        ("crash", "code_crashed", "SIGSEGV"),
        ("memory", "out_of_memory", "0.50 GiB|512 MiB"),
        ("processes", "process_limit", "more than 20 processes"),
        ("disk", "disk_limit", "more than 16 MiB of disk space"),
        ("output", "output_limit", "printed more than 4 MiB"),
        ("extended output", "output_limit", "printed more than 4 MiB"),
    ],
)
def test_a_run_that_ends_early_names_the_cause(found: Found, run: str, code: str, words: str) -> None:
    assert (found[run]["outcome"], found[run]["code"]) == ("failed", code), found[run]
    assert any(word in found[run]["message"] for word in words.split("|")), found[run]["message"]


def test_code_that_ignores_the_request_to_stop_is_killed_after_the_grace_time(found: Found) -> None:
    assert "was killed" in found["ignores the request to stop"]


def test_code_that_hangs_is_ended_with_its_stacks_in_the_log(found: Found) -> None:
    assert found["hang"]["code"] == "hung"
    assert any("do_hang" in line for line in found["hang"]["lines"]), found["hang"]["lines"]


def test_nothing_is_left_of_runs_that_ended(found: Found) -> None:
    if not record(found).holds(Guarantee.SURVIVE):
        pytest.skip("not guaranteed at this level")
    assert found["left"] == []
    assert found["folders left"] == []


@pytest.mark.parametrize("level", list(Level))
def test_nothing_is_left_of_runs_whose_node_was_killed(level: Level, cases: Cases) -> None:
    worker = "root" if os.geteuid() == 0 else "user"
    cases.require(worker, level)
    command = [sys.executable, "-m", MODULE, "hold", level]
    with subprocess.Popen(command, cwd=CODE_ROOT, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        home = Path(node.stdout.readline().strip())
        assert left_of(home)
        node.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 15
    while (left := left_of(home)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
