"""Table rows by their column names, in both protocols."""

import json
import struct
from typing import Any

import numpy as np
import pytest

from jobs.spec.signature import InputColumn, Signature, TensorSpec
from tests.features.making import ALL, COLUMNS, ROWS, plans
from workers.features.fitting import fit
from workers.features.pipeline import Pipeline
from workers.model_process.errors import BadRequest, BodyTooLarge
from workers.serving.protocols import (
    oip_infer,
    open_inference,
    quick_bodies,
    table_rows,
    tensorflow_serving,
    tfs_predict,
)

PIPELINE = Pipeline(fit(plans(), COLUMNS, ALL))
WIDTH = PIPELINE.features.width
SIGNATURE = Signature(
    inputs=(TensorSpec(name="input", dtype="float32", shape=(WIDTH,)),),
    outputs=(TensorSpec(name="output", dtype="float32", shape=(1,)),),
    columns=tuple(InputColumn(name=name, type=kind) for name, kind in PIPELINE.columns.items()),
)
STORED = PIPELINE.of_stored(COLUMNS)


def predicted(body: Any) -> tfs_predict.PredictCall:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return tfs_predict.parse_predict(sent, SIGNATURE, PIPELINE)


def inferred(tensors: list[dict[str, Any]], raw: bytes = b"") -> np.ndarray:
    head = json.dumps({"inputs": tensors}).encode()
    return oip_infer.parse_infer(head + raw, str(len(head)) if raw else None, SIGNATURE, PIPELINE).arrays[0]


def test_rows_by_name_give_the_bits_of_the_training() -> None:
    call = predicted({"instances": ROWS})
    assert call.rows
    assert call.arrays[0].tobytes() == STORED.tobytes()


def test_columns_by_name_give_the_bits_of_the_training() -> None:
    call = predicted({"inputs": {name: [row.get(name) for row in ROWS] for name in COLUMNS}})
    assert not call.rows
    assert call.arrays[0].tobytes() == STORED.tobytes()


def test_the_encoded_numbers_are_refused_with_the_columns_in_order() -> None:
    encoded = STORED.tolist()
    for body in (
        {"instances": encoded},
        {"instances": [{"input": row} for row in encoded]},
        {"inputs": encoded},
        {"inputs": {"input": encoded}},
    ):
        with pytest.raises(
            BadRequest, match=f"row 1 has {WIDTH} values, and the model takes 10 columns in this"
        ):
            predicted(body)


def test_all_columns_have_the_name_input_or_that_of_the_input_unless_a_column_has_it() -> None:
    own = SIGNATURE.model_copy(update={"inputs": (SIGNATURE.inputs[0].model_copy(update={"name": "x_1"}),)})
    row = [ROWS[0].get(name) for name in PIPELINE.columns]
    for name in ("input", "x_1"):
        body = json.dumps({"instances": [{name: row}]}).encode()
        array = tfs_predict.parse_predict(body, own, PIPELINE).arrays[0]
        assert array.tobytes() == STORED[:1].tobytes()
    column = PIPELINE.features.columns[0].model_copy(update={"column": "input"})
    pipeline = Pipeline(PIPELINE.features.model_copy(update={"columns": (column,)}))
    (value,) = tfs_predict.parse_predict(b'{"instances": [{"input": 3.5}]}', own, pipeline).arrays
    assert value[0, 0] == 3.5
    with pytest.raises(BadRequest, match="column 'input' takes numbers"):
        tfs_predict.parse_predict(b'{"instances": [{"input": [3.5]}]}', own, pipeline)


def test_one_tensor_for_each_column_gives_the_bits_of_the_training() -> None:
    tensors: list[dict[str, Any]] = [
        {"name": "age", "shape": [6], "datatype": "FP64", "data": [row.get("age") for row in ROWS]},
        {"name": "rooms", "shape": [6, 1], "datatype": "INT64", "data": [[row["rooms"]] for row in ROWS]},
        {"name": "member", "shape": [6], "datatype": "BOOL", "data": [bool(row["member"]) for row in ROWS]},
        *(
            {"name": name, "shape": [6], "datatype": "BYTES", "data": [row.get(name) or "" for row in ROWS]}
            for name in ("plan", "city", "street", "bought", "review", "title", "note")
        ),
    ]
    assert inferred(tensors).tobytes() == STORED.tobytes()


def test_binary_tensors_have_texts_after_their_lengths() -> None:
    texts = b"".join(struct.pack("<I", len(text)) + text for text in (b"free", b"", "Zürich".encode()))
    ages = np.array([31.5, np.nan, 8.0], "<f8").tobytes()
    tensor = inferred(
        [
            {
                "name": "plan",
                "shape": [3],
                "datatype": "BYTES",
                "parameters": {"binary_data_size": len(texts)},
            },
            {"name": "age", "shape": [3], "datatype": "FP64", "parameters": {"binary_data_size": len(ages)}},
        ],
        texts + ages,
    )
    expected = PIPELINE.of_rows([{"plan": "free", "age": 31.5}, {}, {"plan": "Zürich", "age": 8.0}])
    assert tensor.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Missing 'inputs' or 'instances' key"),
        ({"instances": {}}, "Expecting 'instances' to be an list/array"),
        ({"instances": []}, "No values in 'instances' array"),
        (
            {"instances": [[1, 2]]},
            "row 1 has 2 values, and the model takes 10 columns in this order: age, rooms",
        ),
        ({"instances": [5]}, "row 1 has 1 value, and the model takes 10 columns"),
        ({"inputs": []}, "inputs have no rows"),
        ({"inputs": {}}, "inputs have no rows"),
        ({"inputs": 5}, "'inputs' must be a list of rows, or an object with the columns age, rooms"),
        (b'{"instances": [{"input": [1], "input": [2]}]}', 'has the key "input" twice'),
        ({"instances": [{"age": 1}, [1]]}, "Expecting object but got list at item 1"),
        ({"instances": [[1], {"age": 1}]}, "Expecting value/list but got object at item 1"),
        ({"instances": [{"age": "old"}]}, "column 'age' takes numbers, but row 1 has 'old'"),
        ({"instances": [{"colour": "red"}]}, "row 1 has the unknown column 'colour'"),
        (b'{"instances": [{"age": 1, "age": 2}]}', 'has the key "age" twice'),
        (b'{"instances": [{"age" : 1, "plan": "\\":", "age": 2}]}', 'has the key "age" twice'),
        ({"inputs": {"age": [1, 2], "rooms": [1]}}, "columns differ in their number of rows"),
        ({"inputs": {"age": 1}}, "column 'age' must be a list with one value for each row"),
        ({"inputs": {"age": []}}, "inputs have no rows"),
        ({"inputs": {"colour": ["red"]}}, "the request has the unknown column 'colour'"),
    ],
)
def test_a_wrong_body_is_refused_with_the_place(body: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        predicted(body)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("tensor", "raw", "message"),
    [
        ({"name": "colour", "shape": [1], "datatype": "BYTES", "data": [""]}, b"", "input 'colour'"),
        ({"name": "age", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}, b"", "shape must be [rows]"),
        ({"name": "age", "shape": [], "datatype": "FP32", "data": []}, b"", "shape must be [rows]"),
        ({"name": "age", "shape": [True], "datatype": "FP32", "data": [1]}, b"", "shape must be [rows]"),
        ({"name": "age", "shape": [2], "datatype": "FP32", "data": [1]}, b"", "must be a list of 2 values"),
        ({"name": "age", "shape": [1], "datatype": "TEXT", "data": [1]}, b"", "datatype 'TEXT' is unknown"),
        ({"name": "age", "shape": [1], "datatype": "BYTES", "data": ["x"]}, b"", "'age' takes numbers"),
        ({"name": "plan", "shape": [1], "datatype": "BYTES"}, b"\xff\0\0\0ab", "ends after the binary"),
        ({"name": "plan", "shape": [1], "datatype": "BYTES"}, b"\1\0\0\0\xff", "text 1 is not UTF-8"),
        ({"name": "age", "shape": [1], "datatype": "FP64"}, b"abc", "no whole number of values"),
    ],
)  # fmt: skip
def test_a_wrong_tensor_is_refused_with_its_name(tensor: dict[str, Any], raw: bytes, message: str) -> None:
    if raw:
        tensor = {**tensor, "parameters": {"binary_data_size": len(raw)}}
    with pytest.raises(BadRequest) as refused:
        inferred([tensor], raw)
    assert message in str(refused.value)


def test_a_request_of_many_empty_rows_is_refused_before_it_takes_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_rows, "MAX_INPUT_BYTES", 4 * WIDTH * 10)
    assert len(predicted({"instances": [{}] * 10}).arrays[0]) == 10
    bodies: tuple[dict[str, Any], ...] = ({"instances": [{}] * 11}, {"inputs": {"age": [None] * 11}})
    for body in bodies:
        with pytest.raises(BodyTooLarge, match="send at most 10"):
            predicted(body)


def test_metadata_name_the_columns_with_their_types() -> None:
    ours = json.loads(open_inference.encode_metadata("m", [1], SIGNATURE))["inputs"]
    assert {tensor["name"]: tensor["datatype"] for tensor in ours} == {
        "age": "FP64", "rooms": "INT64", "member": "BOOL", "plan": "BYTES", "city": "BYTES",
        "street": "BYTES", "bought": "BYTES", "review": "BYTES",
        "title": "BYTES", "note": "BYTES",
    }  # fmt: skip
    answer = json.loads(tensorflow_serving.encode_metadata("m", 1, SIGNATURE))
    inputs = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]
    assert (inputs["city"]["dtype"], inputs["age"]["dtype"]) == ("DT_STRING", "DT_DOUBLE")


def test_only_small_bodies_for_few_columns_are_read_at_once() -> None:
    row = json.dumps({"instances": ROWS[:1]}).encode()
    size = quick_bodies.size_of(PIPELINE)
    assert size == len(COLUMNS) + WIDTH // quick_bodies.POSITIONS_PER_COLUMN
    assert quick_bodies.is_quick(row, size)
    assert not quick_bodies.is_quick(row, 20_000)
    assert quick_bodies.is_quick(row, 200)
    assert not quick_bodies.is_quick(b'{"instances":[' + b"{}," * 600 + b"{}]}", 20)
    assert not quick_bodies.is_quick(b'{"inputs":{"age":[' + b"1," * 600 + b"1]}}", 20)
    assert not quick_bodies.is_quick(b'{"\\u0069nputs":{"age":[' + b"1," * 600 + b"1]}}", 20)
    assert not quick_bodies.is_quick(row, size, raw=1500)
    numbers = json.dumps({"instances": [[0.5] * 20] * 100}).encode()
    assert len(numbers) > quick_bodies.MAX_QUICK_BYTES
    assert quick_bodies.is_quick(numbers, 20)
    assert not quick_bodies.is_quick(numbers[:-1] + b', "id": null}', 20)
    assert not quick_bodies.is_quick(numbers, 20_000)
    assert not quick_bodies.is_quick(b'{"inputs":[' + b"[1,2],[3,4]," * 2000 + b"[5,6]]}", 2)
    assert quick_bodies.is_quick(numbers * 9, 0)
    assert quick_bodies.is_quick(b'{"instances":[' + b"[1,2],[3,4]" * 50 + b"]}", 2)
    assert not quick_bodies.is_quick(b'{"instances":[' + b"null," * 600 + b"1]}", 20)
    windows = b'{"instances":[{"rows":[' + b"[],[]," * 150 + b"[]]}]}"
    assert quick_bodies.is_quick(windows, 10)
    assert not quick_bodies.is_quick(windows, 20)


def test_a_wide_column_takes_longer() -> None:
    wide = PIPELINE.features.columns[3].model_copy(update={"size": 5_000_000})
    pipeline = Pipeline(PIPELINE.features.model_copy(update={"columns": (wide,)}))
    assert not quick_bodies.is_quick(b'{"instances":[{},{}]}', quick_bodies.size_of(pipeline))
