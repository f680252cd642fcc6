"""Executions that are trained in one call have the results of each alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests import own_code
from tests.engine.helpers import RecordingReport
from tests.engine.models.test_fine_tuned_files import trial_task
from tests.engine.models.test_fine_tuning import layered, stored
from tests.engine.models.test_own_code_training import trial
from tests.engine.models.test_texts import FIT as TEXT_FIT
from tests.engine.models.test_texts import SMALL as TEXT_MODELS
from tests.engine.processes.test_lockstep import assert_alike, task_of, trained
from tests.engine.training.test_image_training import FIT as IMAGE_FIT
from tests.engine.training.test_image_training import MODELS as IMAGE_MODELS


def test_residual_networks_in_one_call_train_as_they_do_one_by_one(
    images: DatasetFile,
    tmp_path: Path,
    set_cost: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workers.engine.training.program_loop import ProgramLoop

    # On a processor, convolutions are faster step by step, and then no call trains several models.
    monkeypatch.setattr(ProgramLoop, "step_mode", "many")
    parts: dict[str, Any] = {"template": "resnet", "args": IMAGE_MODELS["resnet"], "fit": IMAGE_FIT}
    calls = set_cost(None)
    alone = trained(task_of(images, tmp_path / "alone", **parts))
    assert calls == []
    calls = set_cost(0.5)
    assert_alike(trained(task_of(images, tmp_path / "together", **parts)), alone)
    assert calls == [3] * 3


@pytest.mark.parametrize("template", TEXT_MODELS)
def test_models_of_texts_in_one_call_train_as_they_do_one_by_one(
    tmp_path: Path,
    texts: DatasetFile,
    set_cost: Any,
    template: str,
) -> None:
    parts: dict[str, Any] = {"template": template, "args": TEXT_MODELS[template], "fit": TEXT_FIT}
    set_cost(None)
    alone = trained(task_of(texts, tmp_path / "alone", **parts))
    calls = set_cost(0.5)
    assert_alike(trained(task_of(texts, tmp_path / "together", **parts)), alone)
    assert calls == [3] * TEXT_FIT["epochs"]


@pytest.mark.parametrize("head", ["keep", "new"])
def test_fine_tuned_models_in_one_call_train_as_each_alone(
    blobs_file: DatasetFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    from workers.engine.compiled.timing_results import TimingResults
    from workers.engine.tasks import trial

    base = stored(layered(), tmp_path)
    monkeypatch.setattr(TimingResults, "relative_cost", lambda self, count: 0.5)
    together = trial_task(blobs_file, tmp_path / "a", base, seeds=(1, 2), freeze_to="norm", head=head)
    (trial_result,) = trial.run(together, RecordingReport(tmp_path / "a"))["trials"]
    for execution in trial_result["executions"]:
        folder = tmp_path / f"alone-{execution['execution']}"
        alone = trial_task(
            blobs_file, folder, base, seeds=(execution["execution"],), freeze_to="norm", head=head
        )
        (one,) = trial.run(alone, RecordingReport(folder))["trials"]
        assert one["executions"][0]["metrics"] == pytest.approx(execution["metrics"], rel=1e-4)


def test_executions_that_are_trained_in_one_call_have_the_same_scores(
    tmp_path: Path, iris: DatasetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled.vmapped import VmappedProgram
    from workers.engine.training import lockstep

    def scores(folder: Path) -> list[float]:
        result, _ = trial(folder, own_code.OWN_OBJECTS, "build_model", iris, seeds=(1, 2, 3))
        return [execution["score"] for execution in result["trials"][0]["executions"]]

    one_by_one = scores(tmp_path / "a")
    calls = []
    train = VmappedProgram.train

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return train(*arguments)

    monkeypatch.setattr(lockstep, "_vmap_is_faster", lambda *_: True)
    monkeypatch.setattr(VmappedProgram, "is_faster", lambda *_: True)
    monkeypatch.setattr(VmappedProgram, "train", counted)
    np.testing.assert_allclose(scores(tmp_path / "b"), one_by_one, rtol=1e-4)
    assert calls
