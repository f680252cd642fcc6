"""How `.ci/run` judges a submission's tests."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.core_seconds import GREW
from tests.plugins.failed_tests import Outcome

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import ci_tests

PASSED = Outcome(0, {})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the script with runs that end as given, one after the other."""

    def run(*outcomes: Outcome, folders: tuple[str, ...] = ()) -> int:
        remaining = list(outcomes)
        monkeypatch.setattr(ci_tests, "folders_to_run", lambda: list(folders))
        monkeypatch.setattr(ci_tests, "_run", lambda _: remaining.pop(0))
        code = ci_tests.main()
        assert remaining == []
        return code

    return run


def test_a_failed_test_that_passes_alone_is_reported_with_its_first_failure(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Outcome(1, {"tests/a.py::test_b": "the first failure"}), PASSED) == 0
    *_, title, test, report = capsys.readouterr().out.splitlines()
    assert title.startswith("FLAKY: 1 tests failed once")
    assert (test, report) == ("--- tests/a.py::test_b", "the first failure")


def test_a_test_that_fails_twice_fails_the_run(run: Callable[..., int]) -> None:
    assert run(Outcome(1, {"a": "", "b": ""}), Outcome(1, {"b": ""})) == 1


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(Outcome(GREW, {}), id="a folder became dearer"),
        pytest.param(Outcome(2, {}), id="interrupted"),
        pytest.param(Outcome(1, {}), id="failed without a test"),
        pytest.param(Outcome(0, {}, ("tests/a.py",)), id="a file cannot be collected"),
        pytest.param(Outcome.read(Path("/absent")), id="no end"),
    ],
)
def test_what_no_repetition_can_mend_fails_the_run(run: Callable[..., int], outcome: Outcome) -> None:
    assert run(outcome) == 1


def test_many_failures_are_not_repeated(run: Callable[..., int]) -> None:
    assert run(Outcome(1, {str(number): "" for number in range(ci_tests.MOST_REPEATED + 1)})) == 1


def test_folders_with_changes_since_their_last_run_follow_the_first_tier(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(PASSED, PASSED, folders=("upgrade",)) == 0
    assert "second tier to run: upgrade." in capsys.readouterr().out
