"""TensorFlow Serving's paths, predict bodies, status and metadata."""

import json

import numpy as np
import pytest

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import BadRequest
from workers.serving.protocols.target import Target
from workers.serving.protocols.tensorflow_serving import encode_metadata, encode_status, model_route
from workers.serving.protocols.tfs_predict import encode_predict, parse_predict
from workers.serving.version_status import VersionStatus

ONE = Signature(
    inputs=(TensorSpec(name="x", dtype="float32", shape=(2,)),),
    outputs=(TensorSpec(name="y", dtype="float32", shape=(1,)),),
)
TWO = Signature(
    inputs=(TensorSpec(name="a", dtype="float32", shape=(2,)), TensorSpec(name="b", dtype="int32", shape=())),
    outputs=(
        TensorSpec(name="p", dtype="float32", shape=(2,)),
        TensorSpec(name="q", dtype="float32", shape=()),
    ),
)


@pytest.mark.parametrize(
    ("method", "path", "verb", "target"),
    [
        ("POST", "/v1/models/m:predict", "predict", Target("m")),
        ("POST", "/V1/Models/m/VERSIONS/7:PREDICT", "predict", Target("m", version=7)),
        ("POST", "/v1/models/m/labels/stable:predict", "predict", Target("m", label="stable")),
        ("POST", "/v1/models/a%2Fb%3Ac:classify", "classify", Target("a/b:c")),
        ("GET", "/v1/models/m", "status", Target("m")),
        ("GET", "/v1/models/m/versions/007", "status", Target("m", version=7)),
        ("GET", "/v1/models/m/labels/l/metadata", "metadata", Target("m", label="l")),
    ],
)
def test_paths_are_read(method: str, path: str, verb: str, target: Target) -> None:
    assert model_route(method, path) == (verb, target)


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/v1/models", "Missing model name in request."),
        ("GET", "/v1/models/m/versions/99999999999999999999", "Failed to convert version"),
        (
            "POST",
            "/v1/models/m/versions/5/labels/x:predict",
            "Malformed request: POST /v1/models/m/versions/5/",
        ),
        ("POST", "/v1/models/m/version/5:predict", "Malformed request"),
        ("POST", "/v1/models/m/metadata", "Malformed request"),
        ("GET", "/v1/models/m:predict", "Malformed request: GET /v1/models/m:predict"),
        ("OPTIONS", "/v1/models/m:predict", "Malformed request"),
        ("GET", "/v1/models/m/", "Malformed request"),
        ("POST", "/v1/models/m:predict\n", "Malformed request"),
    ],
)
def test_wrong_paths_are_bad_requests(method: str, path: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        model_route(method, path)


def parsed(body: object, signature: Signature = ONE) -> tuple[list[list[object]], bool]:
    call = parse_predict(json.dumps(body).encode(), signature)
    return [array.tolist() for array in call.arrays], call.rows


def test_rows_may_be_bare_or_named() -> None:
    assert parsed({"instances": [[1, 2], [3, 4]]}) == ([[[1, 2], [3, 4]]], True)
    assert parsed({"instances": [{"x": [1, 2]}]}) == ([[[1, 2]]], True)


def test_rows_of_several_inputs_are_named() -> None:
    assert parsed({"instances": [{"b": 5, "a": [1, 2]}]}, TWO) == ([[[1, 2]], [5]], True)


def test_columns_may_be_bare_for_one_input_and_extra_ones_are_ignored() -> None:
    assert parsed({"inputs": [[1, 2]]}) == ([[[1, 2]]], False)
    assert parsed({"inputs": {"x": [[1, 2]], "other": "ignored"}}) == ([[[1, 2]]], False)


@pytest.mark.parametrize(
    ("body", "signature", "message"),
    [
        ([], ONE, r"JSON Value: \[\] Is not object"),
        ({}, ONE, "Missing 'inputs' or 'instances' key"),
        (
            {"instances": [[1, 2]], "inputs": [[1, 2]]},
            ONE,
            "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist",
        ),
        ({"instances": []}, ONE, r'JSON Value: {"instances": \[\]} No values in \'instances\' array'),
        ({"instances": 5}, ONE, "JSON Value: {\"instances\": 5} Expecting 'instances' to be an list/array"),
        (
            {"instances": [{"x": [1, 2]}, [1, 2]]},
            ONE,
            "Expecting object but got list at item 1 of input list",
        ),
        (
            {"instances": [[1, 2], {"x": [1, 2]}]},
            ONE,
            "Expecting value/list but got object at item 1 of input list",
        ),
        (
            {"instances": [{"x": [1, 2], "z": 1}]},
            ONE,
            "Failed to process element: 0 of 'instances' list. JSON object: .* keys must be equal to: x",
        ),
        ({"instances": [{"b": 5}]}, TWO, "keys must be equal to: a,b"),
        ({"instances": [[1, 2]]}, TWO, "expecting list of objects as multiple input tensors required"),
        ({"inputs": [[1, 2]]}, TWO, "expecting an object"),
        ({"inputs": {"a": [[1, 2]]}}, TWO, "Missing named input: b"),
        ({"inputs": {"a": [[1, 2]], "b": [1, 2]}}, TWO, "number of rows"),
        ({"inputs": {"x": []}}, ONE, "has shape"),
        ({"inputs": 3}, ONE, "has shape"),
        (
            {"instances": [[1, 2]], "signature_name": 5},
            ONE,
            "not formatted correctly. 'signature_name' key must be a string value.",
        ),
        ({"instances": [[1, 2]], "signature_name": "s"}, ONE, 'Serving signature name: "s" not found'),
    ],
)
def test_wrong_bodies_are_bad_requests(body: object, signature: Signature, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parsed(body, signature)


def test_only_several_outputs_are_named() -> None:
    one, two = [np.array([[1], [2]], np.float32)], [np.array([[1, 2]], np.float32), np.array([3], np.float32)]
    assert encode_predict(one, ONE, rows=True) == b'{"predictions":[[1.0],[2.0]]}'
    assert encode_predict(one, ONE, rows=False) == b'{"outputs":[[1.0],[2.0]]}'
    assert encode_predict(two, TWO, rows=True) == b'{"predictions":[{"p":[1.0,2.0],"q":3.0}]}'
    assert encode_predict(two, TWO, rows=False) == b'{"outputs":{"p":[[1.0,2.0]],"q":[3.0]}}'


def test_status_gives_versions_as_strings_newest_first() -> None:
    body = json.loads(encode_status([VersionStatus(1, "AVAILABLE"), VersionStatus(12, "END", "no bytes")]))
    assert body["model_version_status"] == [
        {"version": "12", "state": "END", "status": {"error_code": "UNKNOWN", "error_message": "no bytes"}},
        {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}},
    ]


def test_metadata_gives_sizes_as_strings_and_any_size_as_minus_one() -> None:
    body = json.loads(encode_metadata("m", 123, ONE))
    assert body["model_spec"] == {"name": "m", "signature_name": "", "version": "123"}
    definition = body["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert definition["inputs"]["x"] == {
        "dtype": "DT_FLOAT",
        "tensor_shape": {
            "dim": [{"size": "-1", "name": ""}, {"size": "2", "name": ""}],
            "unknown_rank": False,
        },
        "name": "x:0",
    }
    assert definition["method_name"] == "tensorflow/serving/predict"
