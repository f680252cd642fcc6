"""Ensembles of models inside models, and of models in own code, are exported."""

from pathlib import Path

from jobs.kinds.ensemble.payload import EnsembleTask
from jobs.kinds.quantize.payload import QuantizeTask
from jobs.kinds.register.payload import RegisterTask
from jobs.messages.member import Member
from jobs.messages.task import DatasetFile
from jobs.spec.sections.after import Ensemble, Quantize
from tests import own_code
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.engine.models.test_own_code_training import trained
from tests.engine.tasks.test_quantize import read
from workers.engine.data.store import file_digest
from workers.engine.tasks import ensemble, quantize, register


def test_an_ensemble_of_nested_models_can_be_quantized(tmp_path: Path) -> None:
    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    members = tuple(train_member(tmp_path, f"m{k}", spec, file, units=16 + k) for k in range(2))
    pooled = ArtifactReport(tmp_path / "pooled")
    shared = {"spec": spec, "dataset": file}
    ensemble.run(
        EnsembleTask(folder=pooled.folder, members=members, ensemble=Ensemble(method="mean"), **shared),
        pooled,
    )
    report = ArtifactReport(tmp_path / "quantized")
    model = str(pooled.artifacts["model"])
    result = quantize.run(
        QuantizeTask(folder=report.folder, quantize=Quantize(), model=model, **shared), report
    )
    assert result["quantized_layers"] == 4
    assert result["agreement"]["share"] >= 0.97
    layers = [layer.layer for layer in read(report).layers]
    assert len(set(layers)) == 4, "the layers of different members have different names"
    assert all("/" in layer for layer in layers), layers


def test_models_of_code_are_pooled_quantized_and_registered(tmp_path: Path, iris: DatasetFile) -> None:
    members = []
    for number, seed in enumerate((1, 2), start=1):
        _, report, task = trained(
            tmp_path / str(number), own_code.OWN_OBJECTS, "build_model", iris, fit={"seed": seed}
        )
        members.append(
            Member(
                name=f"m{number}",
                model=str(report.artifacts["model"]),
                validation_predictions=str(report.artifacts["validation_predictions"]),
            )
        )
    common = {"code": task.code, "spec": task.spec, "dataset": iris}
    pooled = ArtifactReport(tmp_path / "pooled")
    task_result = ensemble.run(
        EnsembleTask(folder=pooled.folder, members=members, ensemble={"method": "mean"}, **common), pooled
    )
    assert task_result["metrics"]["test"]["accuracy"] > 0.2
    small = ArtifactReport(tmp_path / "small")
    task_result = quantize.run(
        QuantizeTask(
            folder=small.folder, model=members[0].model, quantize={"mode": "int8"}, threads=1, **common
        ),
        small,
    )
    assert task_result["quantized_layers"] == 2
    for number, file in enumerate((pooled.artifacts["model"], small.artifacts["model"])):
        entered = ArtifactReport(tmp_path / f"registered-{number}")
        registered = register.run(
            RegisterTask(
                folder=entered.folder, code=task.code, model=str(file), digest=file_digest(file),
                dataset=iris, foreign=False,
            ),
            entered,
        )  # fmt: skip
        assert registered["class_labels"] == iris.profile["class_labels"]
