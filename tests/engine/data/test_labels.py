"""Targets with several labels in a row: lists, and texts with a separator."""

import json
from pathlib import Path

import numpy as np
import pytest

from jobs.messages.reports.evaluation import EVALUATION
from jobs.messages.task import DatasetFile
from jobs.messages.training import TrainTask
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from tests.engine.helpers import RecordingReport, csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.data.labels import several_labels
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.texts import text_array
from workers.engine.errors import BadData
from workers.engine.tasks import train

TAGS: tuple[list[str], ...] = (["red", "big"], ["blue"], [], ["blue", "small"], ["red"])


def json_lines(folder: Path, rows: int = 40, **more: object) -> DatasetFile:
    lines = [
        {"length": i % 5, "width": i % 7, "tags": TAGS[i % 5], **({"also": ["x"]} if more else {})}
        for i in range(rows)
    ]
    path = folder / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return profiled(folder, source="json_lines", path=str(path), target="tags")


def test_lists_of_json_are_a_target_with_several_labels(tmp_path: Path) -> None:
    profile = Profile.model_validate(json_lines(tmp_path).profile)
    assert (profile.task, profile.class_labels) == ("multilabel", ("big", "blue", "red", "small"))
    assert profile.class_counts == (8, 16, 16, 8)


@pytest.mark.parametrize("mark", [";", "|", ", "])
def test_texts_with_a_separator_are_divided_if_the_task_says_so(tmp_path: Path, mark: str) -> None:
    rows = "".join(f'{i},"{mark.join(TAGS[i % 5]) or mark}"\n' for i in range(40))
    file = profiled(tmp_path, source="csv", path=csv_file(tmp_path, "a,tags\n" + rows), task="multilabel")
    profile = Profile.model_validate(file.profile)
    assert profile.class_labels == ("big", "blue", "red", "small")
    y = load_dataset(file, present(spec_of("tags").data)).y
    assert y[:3].tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["['red', 'big']", "['blue']", "[]"], id="Python"),
        pytest.param(["[red, big]", "[blue]", "[ ]"], id="without quotes"),
        pytest.param(['["red", "big"]', "['blue']", "[]"], id="both quotes"),
    ],
)
def test_lists_in_texts_are_labels_without_brackets_and_quotes(texts: list[str]) -> None:
    y, labels = several_labels("tags", text_array(texts))
    assert labels == ("big", "blue", "red")
    assert y.tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_a_model_for_several_labels_is_trained_and_evaluated_by_label(tmp_path: Path) -> None:
    spec = spec_of("tags", args={"units": 8}, fit={"epochs": 2, "batch_size": 16})
    task = TrainTask(
        folder=str(tmp_path), fence=1, dataset=json_lines(tmp_path, rows=60), spec=spec, retrain=None,
        model_name="m", objective={"metric": "val_loss", "direction": "min"},
    )  # fmt: skip
    report = RecordingReport(tmp_path)
    result = train.run(task, report)
    assert result["class_labels"] == ["big", "blue", "red", "small"]
    assert {"val_loss", "val_accuracy"} <= {name for args, _ in report.of("metric") for name in args[1]}
    (evaluation,) = (args[1] for args, _ in report.of("artifact") if args[0] == "evaluation")
    evaluation_of_labels = EVALUATION.validate_json((tmp_path / evaluation).read_bytes())
    assert evaluation_of_labels.task == "multilabel"
    assert [scores.label for scores in evaluation_of_labels.per_class] == result["class_labels"]


def test_lists_in_another_column_are_left_out_with_a_reason(tmp_path: Path) -> None:
    profile = Profile.model_validate(json_lines(tmp_path, also=True).profile)
    (also,) = (column for column in profile.columns if column.name == "also")
    assert also.role == "ignore" and also.reason == "it has lists, which are for a target with several labels"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", "a"], r"has 1 label\(s\) in all rows"),
        (["a;" + "b" * 501, "c"], "has a label of 501 characters"),
        ([";".join(f"l{i}" for i in range(1_001)), "a"], "has 1,002 different labels; at most 1,000"),
    ],
)
def test_labels_that_cannot_be_predicted_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(BadData, match=message):
        several_labels("tags", text_array(texts))


def test_a_key_has_lists_or_single_values_in_all_lines(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"tags": null}\n{"tags": ["a"]}\n{"tags": "b"}\n{}\n')
    with pytest.raises(BadData, match="line 3: a single value as 'tags', which has lists in lines before"):
        read_json_lines(path)
    path.write_text('{"tags": null}\n{"tags": ["a"]}\n{}\n')
    assert read_json_lines(path).columns["tags"].tolist() == ["", '["a"]', ""]


def test_a_target_that_seems_to_have_several_labels_has_a_hint(tmp_path: Path) -> None:
    rows = "".join(f"{i},{'red;big' if i % 2 else 'blue'}\n" for i in range(40))
    file = profiled(tmp_path, source="csv", path=csv_file(tmp_path, "a,tags\n" + rows))
    profile = Profile.model_validate(file.profile)
    assert profile.task == "binary" and "choose the task multilabel" in profile.findings[0]


def test_classes_of_arrays_are_merged_as_those_of_tables(tmp_path: Path) -> None:
    classes = np.asarray(["Cat", "cat ", "CAT", "dog", "cat", "dog"])
    np.savez(tmp_path / "d.npz", x=np.arange(18.0).reshape(6, 3), y=classes)
    kept = Profile.model_validate(
        profiled(tmp_path / "kept", source="npz", path=str(tmp_path / "d.npz")).profile
    )
    assert kept.class_labels == ("CAT", "Cat", "cat", "dog")
    assert [offer.change for offer in kept.offers] == [ColumnRequest(name="y", merge_labels=True)]
    merging = profiled(
        tmp_path / "merged",
        source="npz",
        path=str(tmp_path / "d.npz"),
        columns=(ColumnRequest(name="y", merge_labels=True),),
    )
    merged = Profile.model_validate(merging.profile)
    assert (merged.class_labels, merged.class_counts) == (("cat", "dog"), (4, 2))


def test_labels_of_divided_texts_that_differ_in_writing_are_found(tmp_path: Path) -> None:
    rows = "".join(f"{i},{('red;big', 'Red;big', 'blue')[i % 3]}\n" for i in range(30))
    file = profiled(tmp_path, source="csv", path=csv_file(tmp_path, "a,tags\n" + rows), task="multilabel")
    assert any(offer.change.merge_labels for offer in Profile.model_validate(file.profile).offers)
