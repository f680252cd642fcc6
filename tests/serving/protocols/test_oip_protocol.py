"""The Open Inference Protocol: JSON and raw tensors."""

import json
from typing import Any

import numpy as np
import pytest

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import BadRequest
from workers.serving.protocols.oip_infer import InferCall, encode_infer, parse_infer
from workers.serving.protocols.oip_outputs import RequestedOutput
from workers.serving.protocols.open_inference import encode_metadata, model_route
from workers.serving.protocols.target import Target

SIGNATURE = Signature(
    inputs=(TensorSpec(name="a", dtype="float32", shape=(2,)), TensorSpec(name="b", dtype="int32", shape=())),
    outputs=(
        TensorSpec(name="p", dtype="float32", shape=(2,)),
        TensorSpec(name="q", dtype="float32", shape=()),
    ),
)
A = {"name": "a", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
RAW_A = {key: value for key, value in A.items() if key != "data"}
B = {"name": "b", "shape": [1], "datatype": "INT32", "data": [5]}
OUTPUTS = [np.array([[1, np.pi]], np.float32), np.array([3], np.float32)]


def infer(**changes: Any) -> bytes:
    return json.dumps({"inputs": [A, B], **changes}).encode()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v2/models/m", ("", Target("m"))),
        ("/v2/models/m%2Fn/versions/3/ready", ("ready", Target("m/n", version=3))),
        ("/v2/models/m/infer", ("infer", Target("m"))),
        ("/v2/models/m/load", None),
        ("/v2/models", None),
    ],
)
def test_paths_are_read(path: str, expected: object) -> None:
    assert model_route(path) == expected


def test_data_may_be_flat_or_nested_and_inputs_in_any_order() -> None:
    nested = A | {"data": [[1, 2]]}
    for inputs in ([A, B], [B, nested]):
        call = parse_infer(infer(inputs=inputs), None, SIGNATURE)
        assert [array.tolist() for array in call.arrays] == [[[1, 2]], [5]]


def test_raw_tensors_follow_the_json() -> None:
    a, b = np.array([[1, 2]], np.float32), np.array([5], np.int32)
    raw = [
        {**{k: v for k, v in tensor.items() if k != "data"}, "parameters": {"binary_data_size": array.nbytes}}
        for tensor, array in ((A, a), (B, b))
    ]
    head = infer(inputs=raw, parameters={"binary_data_output": True}, id="7")
    call = parse_infer(head + a.tobytes() + b.tobytes(), str(len(head)), SIGNATURE)
    assert [array.tolist() for array in call.arrays] == [[[1, 2]], [5]]
    body, length = encode_infer(call, OUTPUTS, "m", 4, SIGNATURE)
    answer = json.loads(bytes(body[:length]))
    assert (answer["id"], answer["model_version"]) == ("7", "4")
    assert [output["parameters"]["binary_data_size"] for output in answer["outputs"]] == [8, 4]
    assert body[length:] == OUTPUTS[0].tobytes() + OUTPUTS[1].tobytes()


def test_outputs_may_be_chosen_and_json_ones_stand_beside_raw_ones() -> None:
    outputs = [{"name": "q", "parameters": {"binary_data": True}}, {"name": "p"}]
    call = parse_infer(infer(outputs=outputs), None, SIGNATURE)
    body, length = encode_infer(call, OUTPUTS, "m", 4, SIGNATURE)
    q, p = json.loads(bytes(body[:length]))["outputs"]
    assert (q["name"], p["name"], p["data"]) == ("q", "p", [1.0, 3.1415927])
    assert body[length:] == OUTPUTS[1].tobytes()


def test_values_that_are_not_finite_are_null_in_json_and_kept_in_raw_tensors() -> None:
    outputs = [np.array([[1, np.nan]], np.float32), np.array([np.inf], np.float32)]
    call = parse_infer(
        infer(outputs=[{"name": "p"}, {"name": "q", "parameters": {"binary_data": True}}]), None, SIGNATURE
    )
    body, length = encode_infer(call, outputs, "m", 4, SIGNATURE)
    answer = json.loads(bytes(body[:length]), parse_constant=pytest.fail)
    assert answer["outputs"][0]["data"] == [1.0, None]
    assert answer["outputs"][0]["parameters"] == {"nonfinite": True}
    assert answer["outputs"][1]["parameters"] == {"binary_data_size": 4}
    assert np.frombuffer(body[length:], np.float32) == np.inf


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "needs 'inputs'"),
        (infer(inputs=[]), "needs 'inputs'"),
        (infer(inputs=[A]), r"inputs \['b'\] are missing"),
        (infer(inputs=[A, B, A | {"name": "z"}]), "unexpected input 'z'"),
        (infer(inputs=[A | {"datatype": "FP64"}, B]), "datatype is 'FP64'; the model takes FP32"),
        (infer(inputs=[A | {"shape": [1, 3]}, B]), r"the model takes \[-1, 2\]"),
        (infer(inputs=[A | {"shape": [1, -2]}, B]), "whole numbers"),
        (infer(inputs=[A | {"shape": [2, 2]}, B]), "2 values do not fit"),
        (infer(inputs=[A | {"shape": [0, 2], "data": []}, B | {"shape": [0], "data": []}]), "at least 1"),
        (infer(inputs=[A, B | {"shape": [2], "data": [1, 2]}]), "same first dimension"),
        (
            infer(inputs=[RAW_A | {"parameters": {"binary_data_size": 8}}, B]),
            "binary_data_size 8 does not fit",
        ),
        (
            infer(inputs=[RAW_A | {"parameters": {"binary_data_size": 8}}, B]),
            "Inference-Header-Content-Length",
        ),
        (infer(inputs=[A | {"parameters": {"binary_data_size": 8}}, B]), "either data or binary_data_size"),
        (infer(inputs=[A | {"parameters": 1}, B]), "'parameters' must be an object"),
        (infer(inputs=[A | {"parameters": {"shared_memory_region": "r"}}, B]), "shared_memory_region"),
        (infer(outputs=[{"name": "p", "parameters": {"shared_memory_region": "r"}}]), "shared_memory_region"),
        (infer(outputs=[{"name": "p", "parameters": {"classification": 2}}]), "'classification' is not"),
        (infer(outputs=[{"name": "p", "parameters": {"binary_data": 1}}]), "must be true or false, not 1"),
        (infer(parameters={"binary_data_output": "yes"}), 'must be true or false, not "yes"'),
        (infer(outputs=[{"name": "z"}]), "unexpected output 'z'"),
        (infer(id=5), "'id' must be a string"),
        (infer(id="i" * 1001), "'id' must be a string of at most 1000 characters"),
        (infer(inputs=[A, B, B]), "input 'b' is given twice"),
        (infer()[:-1] + b', "inputs": []}', "needs 'inputs'"),
        (infer().replace(b'"name"', b'"name": "a", "name"', 1), 'has the key "name" twice'),
        (infer(inputs=[A, B | {"datatype": ["INT32"]}]), "the model takes INT32"),
        (infer(outputs=[{"name": "p"}, {"name": "p"}]), "output 'p' is requested twice"),
        (infer(inputs=[A | {"data": ["1", 2]}, B]), "is not of expected type: float"),
        (
            infer(inputs=[A | {"data": [[1, 2], [3, 4]]}, B]),
            r"lists of shape \[2, 2\] do not fit shape \[1, 2\]",
        ),
    ],
)
def test_wrong_bodies_are_bad_requests(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parse_infer(body, None, SIGNATURE)


@pytest.mark.parametrize("length", ["-1", "x", "100000", "9" * 5000])
def test_a_wrong_header_length_is_a_bad_request(length: str) -> None:
    with pytest.raises(BadRequest, match="Inference-Header-Content-Length"):
        parse_infer(infer(), length, SIGNATURE)


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00\x40" * 2, b"abcdefgh"], ids=["no text", "text"])
def test_a_binary_body_without_the_length_of_its_json_names_the_header(raw: bytes) -> None:
    head = infer(inputs=[RAW_A | {"parameters": {"binary_data_size": 8}}, B])
    with pytest.raises(
        BadRequest, match="send the header Inference-Header-Content-Length with the length of"
    ):
        parse_infer(head + raw, None, SIGNATURE)
    with pytest.raises(
        BadRequest, match="the first 10 bytes of the body, by Inference-Header-Content-Length"
    ):
        parse_infer(head + raw, "10", SIGNATURE)


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
@pytest.mark.parametrize("binary", [False, True])
def test_floats_of_16_bits_are_accepted_for_other_floats(datatype: str, binary: bool) -> None:
    tensor: dict[str, Any] = {"name": "a", "shape": [1, 2], "datatype": datatype}
    raw = b""
    if binary:
        values = np.array([1.5, -2], np.float16 if datatype == "FP16" else np.float32)
        raw = (
            values.tobytes() if datatype == "FP16" else (values.view(np.uint32) >> 16).astype("<u2").tobytes()
        )
        tensor["parameters"] = {"binary_data_size": 4}
    else:
        tensor["data"] = [1.5, -2]
    head = infer(inputs=[tensor, B])
    call = parse_infer(head + raw, str(len(head)), SIGNATURE)
    assert (call.arrays[0].dtype.name, call.arrays[0].tolist()) == ("float32", [[1.5, -2.0]])
    with pytest.raises(BadRequest, match=f"datatype is '{datatype}'; the model takes INT32"):
        parse_infer(infer(inputs=[A, B | {"datatype": datatype}]), None, SIGNATURE)


def test_a_boolean_of_another_byte_than_0_and_1_is_refused() -> None:
    flags = Signature(inputs=(TensorSpec(name="f", dtype="bool", shape=()),), outputs=SIGNATURE.outputs)
    tensor = {"name": "f", "shape": [2], "datatype": "BOOL", "parameters": {"binary_data_size": 2}}
    head = json.dumps({"inputs": [tensor]}).encode()
    assert parse_infer(head + b"\1\0", str(len(head)), flags).arrays[0].tolist() == [True, False]
    with pytest.raises(BadRequest, match="input 'f': a BOOL is a byte 0 or 1"):
        parse_infer(head + b"\1\2", str(len(head)), flags)


def test_nested_lists_have_the_shape_that_is_stated() -> None:
    words = Signature(inputs=(TensorSpec(name="w", dtype="int32", shape=(None,)),), outputs=SIGNATURE.outputs)
    tensor = {"name": "w", "shape": [3, 2], "datatype": "INT32", "data": [[1, 2, 3], [4, 5, 6]]}
    with pytest.raises(BadRequest, match=r"lists of shape \[2, 3\] do not fit shape \[3, 2\]"):
        parse_infer(json.dumps({"inputs": [tensor]}).encode(), None, words)


def test_bytes_after_the_last_tensor_are_refused() -> None:
    head = infer()
    with pytest.raises(BadRequest, match="4 bytes follow"):
        parse_infer(head + b"0000", str(len(head)), SIGNATURE)


WIDE = Signature(
    inputs=(TensorSpec(name="i", dtype="int64", shape=()), TensorSpec(name="f", dtype="float64", shape=())),
    outputs=(TensorSpec(name="o", dtype="int64", shape=()),),
)


@pytest.mark.parametrize(("integer", "number"), [("INT64", "FP64"), ("INT32", "FP32")])
@pytest.mark.parametrize("binary", [False, True])
def test_tensors_of_64_bits_are_taken_as_declared_or_as_computed(
    integer: str, number: str, binary: bool
) -> None:
    arrays = [np.array([-(2**31)], np.int64), np.array([0.5], np.float64)]
    arrays = arrays if integer == "INT64" else [arrays[0].astype("int32"), arrays[1].astype("float32")]
    tensors: list[dict[str, Any]] = [
        {"name": name, "shape": [1], "datatype": datatype}
        for name, datatype in (("i", integer), ("f", number))
    ]
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor |= {"parameters": {"binary_data_size": array.nbytes}} if binary else {"data": array.tolist()}
    head = json.dumps({"inputs": tensors}).encode()
    raw = b"".join(array.tobytes() for array in arrays) if binary else b""
    call = parse_infer(head + raw, str(len(head)), WIDE)
    assert [(array.dtype.name, array.tolist()) for array in call.arrays] == [
        ("int32", [-(2**31)]),
        ("float32", [0.5]),
    ]


def test_a_raw_integer_beyond_what_the_model_computes_in_is_refused() -> None:
    raw = np.array([2**31], np.int64).tobytes()
    tensor = {"name": "i", "shape": [1], "datatype": "INT64", "parameters": {"binary_data_size": 8}}
    other = {"name": "f", "shape": [1], "datatype": "FP64", "data": [1]}
    head = json.dumps({"inputs": [tensor, other]}).encode()
    with pytest.raises(
        BadRequest, match=r"2147483648 .*out of range, input 'i' takes -2147483648 to 2147483647"
    ):
        parse_infer(head + raw, str(len(head)), WIDE)


def test_outputs_of_64_bits_are_sent_as_declared() -> None:
    call = InferCall([], [RequestedOutput(0, True)], None)
    body, length = encode_infer(call, [np.array([7], np.int32)], "m", 1, WIDE)
    output = json.loads(bytes(body[:length]))["outputs"][0]
    assert (output["datatype"], output["parameters"]) == ("INT64", {"binary_data_size": 8})
    assert body[length:] == np.array([7], np.int64).tobytes()


def test_metadata_names_versions_and_tensors() -> None:
    body = json.loads(encode_metadata("m", [10, 9], SIGNATURE))
    assert body["versions"] == ["9", "10"]
    assert body["inputs"][0] == {"name": "a", "datatype": "FP32", "shape": [-1, 2]}
