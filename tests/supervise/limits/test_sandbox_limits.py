"""Limits for runs with user code, and the ends of runs whose processes end by themselves."""

import signal

import pytest

from jobs.messages.sandbox import MIB, Breach, Ended, Level
from jobs.removed_settings import warn_of_removed
from jobs.states import Outcome
from workers.confinement.sandbox.enter import CANNOT_START
from workers.confinement.sandbox.levels import allowed_levels
from workers.runner.failures import describe_exit
from workers.supervise.limits.sandbox_end import CODES, end_of_breach, end_of_process
from workers.supervise.limits.sandbox_limits import SandboxLimits


def test_the_operator_sets_limits_by_variables_of_the_worker() -> None:
    variables = {"TRAINYARD_SANDBOX_PROCESSES": "7", "TRAINYARD_SANDBOX_DISK_GIB": "1.5"}
    limits = SandboxLimits.from_environment(variables).run_limits(100 * MIB)
    assert (limits.processes_of_all, limits.disk_of_all) == (7, 1536 * MIB)
    assert limits.memory_of_all == 100 * MIB
    assert limits.threads == 7 * 64


@pytest.mark.parametrize("value", ["many", "0", "-1", "nan", "inf"])
def test_a_limit_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="TRAINYARD_SANDBOX_PROCESSES="):
        SandboxLimits.from_environment({"TRAINYARD_SANDBOX_PROCESSES": value})


def test_the_operator_may_leave_levels_out() -> None:
    assert allowed_levels({}) == tuple(Level)
    assert allowed_levels({"TRAINYARD_SANDBOX_LEVELS": "landlock, process"}) == (
        Level.LANDLOCK,
        Level.PROCESS,
    )
    with pytest.raises(ValueError, match="name levels, of bubblewrap"):
        allowed_levels({"TRAINYARD_SANDBOX_LEVELS": "docker"})
    with pytest.raises(ValueError, match="in place of namespaces, install the package bubblewrap"):
        allowed_levels({"TRAINYARD_SANDBOX_LEVELS": "namespaces,landlock"})


@pytest.mark.parametrize("breach", list(Breach))
def test_a_run_above_a_limit_is_not_repeated_and_says_what_helps(breach: Breach) -> None:
    end = end_of_breach(Ended(breach=breach, used=2, limit=1, message="this run was ended: it used too much"))
    assert (end.outcome, end.code) == (Outcome.FAILED, CODES[breach])
    assert end.message.startswith("This run was ended: it used too much. To continue, ")


@pytest.mark.parametrize(
    ("status", "began", "outcome", "code", "text"),
    [
        (0, True, Outcome.FAILED, "code_exited", "os._exit(0)"),
        (3, True, Outcome.FAILED, "code_exited", "status 3"),
        (-signal.SIGABRT, True, Outcome.FAILED, "code_crashed", "SIGABRT"),
        (-signal.SIGXCPU, True, Outcome.FAILED, "cpu_limit", "TRAINYARD_SANDBOX_CPU_SECONDS"),
        # The kernel kills without a word when the machine has no memory left.
        (-signal.SIGKILL, True, Outcome.LOST, "runner_killed", "killed from outside"),
        (CANNOT_START, False, Outcome.LOST, "sandbox_failed", "no such mount"),
        (1, False, Outcome.LOST, "runner_died", "no such mount"),
    ],
)
def test_the_end_of_a_process_names_its_cause(
    status: int, began: bool, outcome: Outcome, code: str, text: str
) -> None:
    end = end_of_process(status, began=began, printed="first\nno such mount\n")
    assert (end.outcome, end.code) == (outcome, code)
    assert text in end.message


@pytest.mark.parametrize(
    ("status", "text"),
    [(None, "sys.exit(0)"), (3, "sys.exit(3)"), ("no data", "no data")],
)
def test_code_that_calls_sys_exit_is_named_as_the_cause(status: int | str | None, text: str) -> None:
    failed = describe_exit(SystemExit(status), 1.0)
    assert failed.code == "code_exited"
    assert text in failed.message


@pytest.mark.parametrize("variable", ["TRAINYARD_STANDBY_SANDBOXES", "TRAINYARD_PACKAGE_INSTALLER"])
def test_a_variable_of_an_earlier_release_is_not_ignored_in_silence(
    variable: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_removed({variable: "2"})
    warn_of_removed({"TRAINYARD_STANDBY": "2"})
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{variable} has no effect, remove it: ")
