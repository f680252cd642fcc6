"""Answers with the names of the classes, asked for in the address or in the body."""

import json
from typing import Any

import numpy as np
import pytest

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import BadRequest, BodyTooLarge
from workers.serving.protocols import labelled
from workers.serving.protocols.open_inference import OPEN_INFERENCE
from workers.serving.protocols.protocol import AnsweringVersion, PredictionRoute
from workers.serving.protocols.tensorflow_serving import TENSORFLOW_SERVING, encode_metadata

X = TensorSpec(name="x", dtype="float32", shape=(1,))
PLAIN = {"instances": [[1.0], [2.0]]}
ASKING = {**PLAIN, "output": "labels"}


def answered(
    outputs: list[Any],
    labels: tuple[str, ...],
    *,
    body: dict[str, Any] = ASKING,
    query: str = "",
    multilabel: bool = False,
) -> dict[str, Any]:
    """Return the answer of a version with these outputs to a predict body."""
    arrays = [np.array(output, np.float32) for output in outputs]
    specs = tuple(
        TensorSpec(name=f"y{i}", dtype="float32", shape=array.shape[1:]) for i, array in enumerate(arrays)
    )
    signature = Signature(inputs=(X,), outputs=specs)
    route = TENSORFLOW_SERVING.route("POST", "/v1/models/m:predict", query)
    assert isinstance(route, PredictionRoute)
    assert route.prediction.api == "predict"
    call = route.prediction.parse(json.dumps(body).encode(), None, signature, None)
    # Large answers are encoded by another process.
    call = route.prediction.call.restore(call.arrays, json.loads(json.dumps(call.fields())))
    version = AnsweringVersion("m", 3, signature, labels, multilabel)
    answer: dict[str, Any] = json.loads(bytes(route.prediction.encode(call, arrays, version).body))
    return answer


@pytest.mark.parametrize(("query", "body"), [("labels=1", PLAIN), ("a=b&labels=true", PLAIN), ("", ASKING)])
def test_each_row_has_its_class_and_the_probabilities_by_name(query: str, body: dict[str, Any]) -> None:
    answer = answered([[[0.5, 0.25, 0.25], [0, 0.25, 0.75]]], ("ash", "elm", "oak"), query=query, body=body)
    assert answer == {
        "predictions": [
            {"label": "ash", "probabilities": {"ash": 0.5, "elm": 0.25, "oak": 0.25}},
            {"label": "oak", "probabilities": {"ash": 0.0, "elm": 0.25, "oak": 0.75}},
        ]
    }


def test_one_number_is_the_probability_of_the_second_of_two_classes() -> None:
    rows = [
        {"label": "no", "probabilities": {"no": 0.75, "yes": 0.25}},
        {"label": "yes", "probabilities": {"no": 0.25, "yes": 0.75}},
    ]
    assert answered([[[0.25], [0.75]]], ("no", "yes")) == {"predictions": rows}
    # As by TensorFlow Serving, inputs by column have outputs.
    columns = {"inputs": [[1.0], [2.0]], "output": "labels"}
    assert answered([[0.25, 0.75]], ("no", "yes"), body=columns) == {"outputs": rows}


def test_several_labels_may_apply_to_a_row_or_none() -> None:
    answer = answered([[[0.9, 0.6, 0.1], [0.2, 0.1, 0.4]]], ("big", "blue", "red"), multilabel=True)
    assert [row["label"] for row in answer["predictions"]] == [["big", "blue"], []]


def test_a_row_that_is_not_finite_has_no_class() -> None:
    answer = answered([[[np.nan], [0.75]]], ("no", "yes"))
    assert answer["predictions"][0] == {"label": None, "probabilities": {"no": None, "yes": None}}
    assert answer["predictions"][1]["label"] == "yes"
    assert answer["nonfinite"] is True


@pytest.mark.parametrize("query", ["", "labels=0", "labels=false", "other=1"])
def test_without_the_field_the_answer_is_that_of_tensorflow_serving(query: str) -> None:
    answer = answered([[[0.25], [0.75]]], ("no", "yes"), query=query, body=PLAIN)
    assert answer == {"predictions": [[0.25], [0.75]]}


@pytest.mark.parametrize(
    ("outputs", "labels", "reason"),
    [
        ([[[2.5], [3.5]]], (), "m v3 has no names of classes"),
        ([[[0.5, 0.5]] * 2], ("a", "b", "c"), "one number for each of its 3 classes"),
        ([[[0.5, 0.5]] * 2, [[1.0]] * 2], ("a", "b"), "one number for each of its 2 classes"),
        ([[[0.5, 0.5]] * 2], ("a", "a"), "the same name"),
        ([[[0.5, 0.5], [2.5, -1.0]]], ("a", "b"), "row 2 has numbers outside of 0 to 1"),
        ([[[0.5, 0.5], [0.75, 0.75]]], ("a", "b"), "row 2 does not sum to 1"),
    ],
)
def test_outputs_without_known_classes_are_refused_by_the_field_that_asked(
    outputs: list[Any], labels: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(BadRequest, match=f"^labels: .*{reason}"):
        answered(outputs, labels, query="labels=1", body=PLAIN)
    with pytest.raises(BadRequest, match=f"^output: .*{reason}"):
        answered(outputs, labels)


@pytest.mark.parametrize("query", ["labels", "labels=yes", "labels=1&labels=0"])
def test_a_value_that_is_no_switch_is_refused(query: str) -> None:
    with pytest.raises(BadRequest, match=r"^labels: .* is no switch"):
        TENSORFLOW_SERVING.route("POST", "/v1/models/m:predict", query)


def test_another_kind_of_output_is_refused() -> None:
    with pytest.raises(BadRequest, match=r'^output: "names" is unknown'):
        answered([[[0.5]]], ("a", "b"), body={**PLAIN, "output": "names"})


def test_other_operations_refuse_the_field() -> None:
    for verb in ("classify", "regress"):
        with pytest.raises(BadRequest, match=f"^labels: :{verb} has one form"):
            TENSORFLOW_SERVING.route("POST", f"/v1/models/m:{verb}", "labels=1")
    with pytest.raises(BadRequest, match=r"^labels: The Open Inference Protocol"):
        OPEN_INFERENCE.route("POST", "/v2/models/m/infer", "labels=1")
    classify = TENSORFLOW_SERVING.route("POST", "/v1/models/m:classify", "")
    assert isinstance(classify, PredictionRoute)
    with pytest.raises(BadRequest, match="'output' is a field of :predict"):
        body = b'{"examples": [{"x": 1.0}], "output": "labels"}'
        classify.prediction.parse(body, None, Signature(inputs=(X,), outputs=(X,)), None)


def test_names_that_make_the_answer_too_long_are_refused_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(labelled, "_MAX_BYTES", 100)
    with pytest.raises(BodyTooLarge, match="send fewer rows"):
        answered([[[0.5], [0.5]]], ("n" * 30, "y" * 30))


def test_metadata_name_the_classes_in_the_order_of_the_output() -> None:
    signature = Signature(inputs=(X,), outputs=(X,))
    assert json.loads(encode_metadata("m", 1, signature, ("no", "yes")))["class_labels"] == ["no", "yes"]
    assert "class_labels" not in json.loads(encode_metadata("m", 1, signature))
