"""Trials with own code that share a program, or continue with their checkpoint."""

from pathlib import Path
from typing import Any

import pytest

from jobs.messages.task import DatasetFile
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.spec.space.values import apply_values
from tests import own_code
from tests.engine.helpers import RecordingReport
from tests.engine.making import dataset_file
from tests.engine.models.test_own_code_training import spec, trial


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


def test_the_executions_of_a_trial_share_a_program_and_differ_by_their_seeds(
    tmp_path: Path, iris: DatasetFile
) -> None:
    from workers.engine.training import own_code as training

    training._CACHE.clear()
    result, _ = trial(tmp_path, own_code.SEARCH_OF_LAYERS, "build_model", iris, seeds=(1, 2, 1))
    first, second, again = result["trials"][0]["executions"]
    assert len(training._CACHE) == 1
    assert first["score"] != second["score"]
    assert first["metrics"] == again["metrics"]


def test_trials_that_differ_in_the_fit_alone_share_a_program_and_have_their_own_values(
    tmp_path: Path, iris: DatasetFile
) -> None:
    from workers.engine.data.dataset import load_dataset
    from workers.engine.models.own_code.in_use import using_code
    from workers.engine.training.prepare import prepare

    code, programs, decays = own_code.code_in(tmp_path / "code", own_code.NOT_COMPILED), set(), []
    searched = spec(code, "build_model", fit={"optimizer": "adamw"})
    dataset = load_dataset(iris, searched.required_data, searched.texts, None)
    with using_code(code, tmp_path):
        for decay in (0.1, 0.2):
            trial_spec = apply_values(searched, {"units": 8, "fit/optimizer_args/weight_decay": decay})
            ready = prepare(trial_spec, dataset, dataset.parts.train, name="t", seed=0)
            programs.add(ready.program)
            decays.append(float(ready.model.optimizer.weight_decay))
    assert (len(programs), decays) == (1, [0.1, 0.2])


def test_a_training_that_was_stopped_continues_with_its_checkpoint(tmp_path: Path, iris: DatasetFile) -> None:
    whole, _ = trial(tmp_path / "whole", own_code.SEARCH_OF_LAYERS, "build_model", iris)
    stopped, resumed = interrupted(tmp_path, own_code.SEARCH_OF_LAYERS, "build_model", iris)
    assert stopped == "stop"
    assert resumed["trials"][0]["score"] == whole["trials"][0]["score"]


def test_an_own_fit_that_was_stopped_begins_again(tmp_path: Path, iris: DatasetFile) -> None:
    stopped, resumed = interrupted(tmp_path, own_code.TUNED_FIT, "TunedFit", iris)
    assert (stopped, resumed["trials"][0]["executions"][0]["epochs"]) == ("stop", 4)


def interrupted(folder: Path, text: str, entry: str, file: DatasetFile) -> tuple[str, dict[str, Any]]:
    """Stop a trial after its first epoch, and run it again from its checkpoint."""
    from jobs.messages.task import CheckpointFolder
    from workers.engine.report import TaskInterrupted
    from workers.engine.tasks import trial as task

    code = own_code.code_in(folder / "code", text)
    trial_spec = spec(code, entry)

    def run(report: RecordingReport, checkpoints: tuple[Any, ...] = ()) -> dict[str, Any]:
        plan = ExecutionPlan(execution=1, seed=1, checkpoints=checkpoints)
        return task.run(
            TrialTask(
                folder=str(folder), code=code, spec=trial_spec,
                objective={"metric": "val_loss", "direction": "min"}, dataset=file,
                trials=(TrialPlan(number=1, values={}, spec=trial_spec, executions=(plan,)),),
            ),
            report,
        )  # fmt: skip

    report = RecordingReport(folder)
    # The first request is read before the trial, the second one after its first epoch.
    report.requests = [None, "stop"]
    with pytest.raises(TaskInterrupted) as stop:
        run(report)
    written = [
        CheckpointFolder(folder=args[0], manifest=named["manifest"], step=named["step"])
        for args, named in report.of("checkpoint")
    ]
    return str(stop.value.reason), run(RecordingReport(folder), tuple(written))
