"""TensorFlow Serving's classify and regress bodies."""

import json

import numpy as np
import pytest

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import BadRequest
from workers.serving.protocols.tfs_examples import check_allowed, encode_results, parse_examples


def outputs(*shapes: tuple[int | None, ...]) -> Signature:
    specs = tuple(TensorSpec(name=f"y{i}", dtype="float32", shape=shape) for i, shape in enumerate(shapes))
    return Signature(inputs=(TensorSpec(name="x", dtype="float32", shape=(2,)),), outputs=specs)


SIGNATURE = Signature(
    inputs=(
        TensorSpec(name="x", dtype="float32", shape=(2, 2)),
        TensorSpec(name="n", dtype="int64", shape=()),
    ),
    outputs=(TensorSpec(name="y", dtype="float32", shape=(1,)),),
)


def parsed(request: object) -> list[list[object]]:
    return [array.tolist() for array in parse_examples(json.dumps(request).encode(), SIGNATURE)]


def test_features_are_flat_lists_or_values_and_a_context_belongs_to_all_examples() -> None:
    rows = [{"x": [1, 2, 3, 4], "n": 5, "other": "ignored"}, {"x": [5, 6, 7, 8], "n": [6]}]
    assert parsed({"signature_name": "serving_default", "examples": rows}) == [
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        [5, 6],
    ]
    shared = {"context": {"n": 7}, "examples": [{"x": [1, 2, 3, 4]}, {"x": [5, 6, 7, 8]}]}
    assert parsed(shared)[1] == [7, 7]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "key 'examples' is expected and was not found"),
        ({"examples": {}}, "Expecting 'examples' value to be an list/array"),
        ({"examples": []}, "'examples' value is an empty array"),
        ({"examples": [[1]]}, "Example must be JSON object but got JSON Array"),
        ({"context": 1, "examples": [{}]}, "Example must be JSON object but got JSON Number"),
        (
            {"examples": [{"x": [1, 2, 3, 4]}]},
            r"Feature: n is required but could not be found in examples\[0\]",
        ),
        (
            {"examples": [{"x": [[1, 2], [3, 4]], "n": 1}]},
            "Feature: x has element with unexpected JSON type: Array",
        ),
        (
            {"examples": [{"x": [1, 2, 3], "n": 1}]},
            r"Input 'x' has shape \[1, 3\]; the model takes \[\?, 4\]",
        ),
        ({"examples": [{"x": [1, 2, 3, 4], "n": 2**31}]}, "out of range"),
        ({"examples": [{"x": ["1", 2, 3, 4], "n": 1}]}, "is not of expected type: float"),
        ({"context": {"n": 1}, "examples": [{"n": 1}]}, r"Feature: n is in 'context' and in examples\[0\]"),
        ({"signature_name": "s", "examples": [{}]}, "No signature was found with the name: s"),
    ],
)
def test_wrong_bodies_are_bad_requests(request_: object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parsed(request_)


def test_a_feature_that_is_given_twice_is_refused() -> None:
    with pytest.raises(BadRequest, match='has the key "n" twice'):
        parse_examples(b'{"examples": [{"x": [1, 2, 3, 4], "n": 1, "n": 1}]}', SIGNATURE)


def test_a_version_classifies_by_its_labels_and_regresses_by_its_only_number() -> None:
    check_allowed("classify", outputs((3,)), ["a", "b", "c"])
    check_allowed("classify", outputs((1,)), ["a", "b"])
    check_allowed("regress", outputs((1,)), [])
    check_allowed("regress", outputs(()), [])


@pytest.mark.parametrize(
    ("signature", "labels"),
    [
        (outputs((3,)), ["a", "b"]),
        (outputs((0,)), []),
        (outputs((1,)), ["a"] * 3),
        (outputs((3, 1)), ["a", "b", "c"]),
        (outputs((3,), (3,)), ["a", "b", "c"]),
        (outputs((None,)), ["a", "b", "c"]),
    ],
)
def test_other_versions_say_which_signature_they_have(signature: Signature, labels: list[str]) -> None:
    text = "Expected classification signature method_name to be tensorflow/serving/classify. Was: tensorflow"
    with pytest.raises(BadRequest, match=text):
        check_allowed("classify", signature, labels)
    text = "Expected regression signature method_name to be tensorflow/serving/regress. Was: tensorflow"
    with pytest.raises(BadRequest, match=text):
        check_allowed("regress", outputs((2,)), labels)


def test_classes_are_pairs_of_label_and_score() -> None:
    scores = [np.array([[0.1, 0.9], [1, 0]], np.float32)]
    assert encode_results("classify", scores, ["no", "yes"]) == (
        b'{"results":[[["no",0.1],["yes",0.9]],[["no",1.0],["yes",0.0]]]}'
    )
    assert encode_results("classify", [np.array([[0.25]], np.float32)], ["no", "yes"]) == (
        b'{"results":[[["no",0.75],["yes",0.25]]]}'
    )


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_regressions_are_numbers(shape: tuple[int, ...]) -> None:
    values = np.array([0.1, 2], np.float32).reshape(shape)
    assert encode_results("regress", [values], []) == b'{"results":[0.1,2.0]}'
