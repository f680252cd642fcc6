"""Gates compare the classes of two versions by name: the same position may mean another class."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.gate.payload import GateTask
from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.signature import Signature, TensorSpec
from tests.engine.making import ArtifactReport, spec_for, train_member
from workers.engine.data.store import file_digest
from workers.engine.evaluation.class_names import OtherClasses, in_order_of
from workers.engine.evaluation.signature_gate import signature_gate
from workers.engine.tasks import gate, profile

Versions = tuple[ExperimentSpec, DatasetFile, str]


def table_of(folder: Path, names: tuple[str, ...]) -> DatasetFile:
    """Profile rows whose class follows from one column, with each class named in turn."""
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "z", "label"])
        numbers = np.random.default_rng(0).normal(size=(120, 2))
        for number, (x, z) in enumerate(numbers):
            chosen = number % len(names)
            writer.writerow([f"{x + 4 * chosen:.4f}", f"{z:.4f}", names[chosen]])
    report = ArtifactReport(folder / "profile")
    task = ProfileTask(folder=report.folder, source="csv", path=str(path))
    result = profile.run(task, report)
    stored = str(report.artifacts["dataset"])
    return DatasetFile(path=stored, digest=result["digest"], profile=result["profile"])


@pytest.fixture(scope="module", params=[("No", "yes"), ("bird", "cat", "dog")], ids=["two", "three"])
def versions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Versions:
    folder = tmp_path_factory.mktemp("classes")
    file, spec = table_of(folder, request.param), spec_for("iris")
    return spec, file, train_member(folder, "good", spec, file).model


def judged(versions: Versions, folder: Path, **more: Any) -> dict[str, Any]:
    spec, file, model = versions
    task = GateTask(
        folder=str(folder), challenger=model, challenger_digest=file_digest(Path(model)), champion=model,
        dataset=file, spec=spec, **more,
    )  # fmt: skip
    result = gate.run(task, ArtifactReport(folder))
    return {**result, "gates": {one["name"]: one for one in result["gates"]}}


def classes_of(versions: Versions) -> list[str]:
    return list(versions[1].profile["class_labels"])


def test_a_champion_with_other_classes_is_not_compared(versions: Versions, tmp_path: Path) -> None:
    classes = classes_of(versions)
    others = ["Horse", *classes[1:]]
    result = judged(versions, tmp_path, challenger_classes=classes, champion_classes=others)
    metric = result["gates"]["metric"]
    assert (metric["state"], metric["champion"]) == ("not_evaluated", None)
    assert f"it has the classes {', '.join(others)}, the test rows have the classes" in metric["detail"]
    assert set(result["metrics"]) == {"challenger"}


def test_a_champion_with_the_classes_in_another_order_is_compared_by_name(
    versions: Versions, tmp_path: Path
) -> None:
    classes = classes_of(versions)
    same = judged(versions, tmp_path, challenger_classes=classes, champion_classes=classes)
    assert same["metrics"]["champion"]["accuracy"] > 0.9
    # The same file, taken for one that was trained on the classes in another order, names them wrongly.
    turned = [*classes[1:], classes[0]]
    other = judged(versions, tmp_path, challenger_classes=classes, champion_classes=turned)
    assert other["metrics"]["challenger"] == same["metrics"]["challenger"]
    assert other["metrics"]["champion"]["accuracy"] < 0.1


def test_clients_that_read_classes_by_position_are_named_if_the_order_changes() -> None:
    tensor = TensorSpec(name="x", dtype="float32", shape=(2,))
    same = Signature(inputs=(tensor,), outputs=(tensor,))
    changed = signature_gate(same, same, ("No", "yes"), ("yes", "No"))
    assert changed.state == "not_evaluated"
    assert "the classes were yes, No; they are No, yes. Clients that read the" in changed.detail
    for known in (("No", "yes"), None):
        assert signature_gate(same, same, ("No", "yes"), known).state == "passed"


def test_a_challenger_with_other_classes_than_its_test_rows_fails(versions: Versions, tmp_path: Path) -> None:
    result = judged(versions, tmp_path, challenger_classes=["Horse", *classes_of(versions)[1:]])
    for name in ("metric", "better_than_baseline"):
        outcome = result["gates"][name]
        assert outcome["state"] == "failed"
        assert "cannot be evaluated on its test rows: it has the classes Horse" in outcome["detail"]
    assert result["gates"]["finite"]["state"] == "passed"
    assert result["metrics"] == {}


def test_a_champion_with_unknown_classes_is_compared_and_the_gate_says_so(
    versions: Versions, tmp_path: Path
) -> None:
    metric = judged(versions, tmp_path)["gates"]["metric"]
    assert metric["state"] == "passed"
    assert "names of the champion's classes are unknown" in metric["detail"]


def test_a_task_of_an_earlier_release_has_no_class_names(versions: Versions, tmp_path: Path) -> None:
    spec, file, model = versions
    task = GateTask(folder=str(tmp_path), challenger=model, challenger_digest="0", dataset=file, spec=spec)
    stored = task.model_dump(mode="json", exclude={"challenger_classes", "champion_classes"})
    assert GateTask.model_validate(stored).champion_classes is None


def test_columns_follow_the_names() -> None:
    y_pred = np.array([[0.1, 0.2, 0.7]])
    assert in_order_of(["a", "b", "c"], ["c", "a", "b"], y_pred).tolist() == [[0.2, 0.7, 0.1]]


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_the_probability_of_the_second_class_becomes_that_of_the_other(shape: tuple[int, ...]) -> None:
    y_pred = np.array([0.25, 1.0]).reshape(shape)
    assert in_order_of(["no", "yes"], ["yes", "no"], y_pred).ravel().tolist() == [0.75, 0.0]


def test_a_regression_has_no_classes() -> None:
    with pytest.raises(OtherClasses, match="it has no classes, the test rows have the classes no, yes"):
        in_order_of(["no", "yes"], [], np.zeros((2, 1)))


def test_the_classes_that_differ_are_named_first_among_many() -> None:
    names = [f"class {number:02}" for number in range(30)]
    with pytest.raises(OtherClasses) as caught:
        in_order_of(names, [*names[:-1], "other"], np.zeros((2, 30)))
    assert str(caught.value).startswith("it has the classes other, class 00,")
    assert "the test rows have the classes class 29, class 00," in str(caught.value)
