"""A training that begins at its first epoch again reports why."""

import pytest

from jobs.messages.task import CheckpointFolder, EarlierTraining
from tests.engine.helpers import RecordingReport
from workers.engine.training.restart import report_restart

CANDIDATE = CheckpointFolder(folder="/store/job-7/0000000179-1", manifest="m", step=179, epoch=179)


def test_damaged_checkpoints_are_named_with_their_places() -> None:
    report = RecordingReport()
    report_restart(report, EarlierTraining(epoch=179), [CANDIDATE], name="Execution 1 of trial 2")
    [((code, sentence), _)] = report.of("warning")
    assert code == "restarted"
    assert sentence == (
        "Execution 1 of trial 2 begins again at epoch 1, although it had reached epoch 179: none of its "
        "checkpoints is complete on this worker (epoch 179 in /store/job-7/0000000179-1)."
    )


def test_the_reason_of_the_supervisor_is_shown() -> None:
    report = RecordingReport()
    report_restart(report, EarlierTraining(epoch=9, reason="the copy is missing"), [CANDIDATE])
    [((_, sentence), _)] = report.of("warning")
    assert sentence.endswith("it had reached epoch 9: the copy is missing.")


def test_a_run_that_was_killed_before_its_first_checkpoint_has_a_line_in_the_log() -> None:
    report = RecordingReport()
    earlier = EarlierTraining(epoch=3, had_checkpoint=False, reason="it had written no checkpoint yet")
    report_restart(report, earlier, [])
    assert report.of("warning") == []
    [((line,), _)] = report.of("log")
    assert "it had reached epoch 3: it had written no checkpoint yet" in line


@pytest.mark.parametrize("candidates", [[], [CANDIDATE]])
def test_a_first_start_reports_nothing(candidates: list[CheckpointFolder]) -> None:
    report = RecordingReport()
    report_restart(report, None, candidates)
    assert report.of("warning") == report.of("log") == []
