"""Tasks with hostile code on real runners, at the strongest sandbox level that this machine offers.

The attacks at every level are in `tests/sandbox/attacks`.
"""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.sandbox import Guarantee, Level, SandboxRecord
from tests.sandbox.conftest import Cases, as_user, cases, users
from tests.supervise.processes.sandboxed_runs import left_of
from workers.confinement.isolation.users import RunnerUsers
from workers.confinement.isolation.view import CODE_ROOT

__all__ = ["cases", "users"]
MODULE = "tests.supervise.processes.sandboxed_runs"
Findings = dict[str, Any]


@pytest.fixture(scope="module")
def findings(cases: Cases, users: RunnerUsers) -> Findings:
    """One node's findings after it has run all tasks."""
    worker, level = cases.strongest()
    findings: Findings = json.loads(run(level, worker=worker, users=users))
    if "missing" in findings:
        pytest.fail(findings["missing"])
    return findings


def run(*arguments: str, worker: str, users: RunnerUsers) -> str:
    """Return a node's output while it runs tasks."""
    if worker == "user":
        return as_user(MODULE, *arguments, users=users)
    ended = subprocess.run(
        [sys.executable, "-m", MODULE, *arguments],
        cwd=CODE_ROOT, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def record(findings: Findings) -> SandboxRecord:
    return SandboxRecord.model_validate(findings["work"]["sandbox"])


def test_code_gets_its_files_and_what_it_writes_is_kept(findings: Findings) -> None:
    files, changeable = json.loads(findings["work"]["lines"][0])
    assert findings["work"]["outcome"] == "completed", findings["work"]
    assert files == {"package/model.py": "def build_model(hp): ...\n"}
    assert changeable == (not record(findings).holds(Guarantee.WRITE))
    assert len(findings["stored"]) == 1
    (checkpoint,) = findings["checkpoints"]
    assert re.fullmatch("job-1/own-[0-9a-f]+/3-1-0", checkpoint)
    assert checkpoint in findings["checkpoint folders"]
    assert findings["work"]["lines"][3] == json.dumps(["program"])


def test_code_reads_no_keys_no_database_and_no_artifacts_of_others(findings: Findings) -> None:
    readable = json.loads(findings["work"]["lines"][1])
    assert bool(readable) == (not record(findings).holds(Guarantee.READ)), readable


def test_code_connects_to_no_service_of_the_machine(findings: Findings) -> None:
    assert (findings["work"]["lines"][2] == "refused") == record(findings).holds(Guarantee.NETWORK)


def test_a_model_beside_a_task_has_its_file_and_its_code_and_nothing_of_the_task(findings: Findings) -> None:
    run = findings["model beside"]
    assert run["outcome"] == "completed", run
    # Two processes print them.
    lines = [json.loads(line) for line in run["lines"]]
    of_model, ((connects, *readable), code) = sorted(lines, key=lambda line: line[1] is None)
    assert of_model == ["def build_model(hp): ...\n", ["model.py"]]
    assert code is None
    holds = SandboxRecord.model_validate(run["sandbox"]).holds
    assert bool(connects) == (not holds(Guarantee.NETWORK))
    assert any(readable) == (not holds(Guarantee.READ)), readable


def test_a_task_gets_the_cause_of_the_end_of_its_model(findings: Findings) -> None:
    (line,) = (line for line in findings["model that exits"]["lines"] if line.endswith(", null]"))
    answers, _ = json.loads(line)
    assert answers == ["its process ended with status 3; its last line: bye"]


def test_the_sandbox_that_a_run_had_is_recorded_with_its_attempt(findings: Findings) -> None:
    assert record(findings).network is False
    assert record(findings).limits.processes_of_all == 20
    stronger = [state.level for state in record(findings).missing]
    recorded = record(findings).level
    assert isinstance(recorded, Level)
    assert stronger == [level for level in Level if level.strength > recorded.strength]


def test_a_runner_is_reused_for_its_own_job_and_code_alone(findings: Findings) -> None:
    reused = [findings["reused"], findings["reused by another job"], findings["reused for other code"]]
    assert reused == [True, False, False]


def test_each_runner_of_a_job_writes_checkpoints_of_its_own_and_uses_the_programs_of_the_others(
    findings: Findings,
) -> None:
    run = findings["of other code"]
    assert run["outcome"] == "completed", run
    assert json.loads(run["lines"][0])[0] == {"package/model.py": "def build_model(hp): ...\n"}
    assert run["lines"][1:] == ["recorded ['9-1-0']", '["program"]']
    assert sum(path.endswith("/9-1-0") for path in findings["checkpoint folders"]) == 1


def test_a_task_that_needs_a_stronger_level_does_not_start(cases: Cases, users: RunnerUsers) -> None:
    worker, _ = cases.strongest()
    refused = json.loads(run("refuse", worker=worker, users=users))
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
def test_a_run_that_ends_early_names_the_cause(findings: Findings, run: str, code: str, words: str) -> None:
    assert (findings[run]["outcome"], findings[run]["code"]) == ("failed", code), findings[run]
    assert any(word in findings[run]["message"] for word in words.split("|")), findings[run]["message"]


def test_code_that_ignores_the_request_to_stop_is_killed_after_the_grace_time(findings: Findings) -> None:
    assert "was killed" in findings["ignores the request to stop"]


def test_code_that_hangs_is_ended_with_its_stacks_in_the_log(findings: Findings) -> None:
    assert findings["hang"]["code"] == "hung"
    assert any("do_hang" in line for line in findings["hang"]["lines"]), findings["hang"]["lines"]


def test_nothing_is_left_of_runs_that_ended(findings: Findings) -> None:
    if not record(findings).holds(Guarantee.SURVIVE):
        pytest.skip("not guaranteed at this level")
    assert findings["left"] == []
    assert findings["folders left"] == []


def test_nothing_is_left_of_runs_whose_node_was_killed(cases: Cases) -> None:
    _, level = cases.strongest()
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
