"""Row windows by their column names, in both protocols."""

import json
import struct
from typing import Any

import numpy as np
import pytest

from jobs.spec.signature import InputColumn, InputWindow, Signature, TensorSpec
from tests.features.making import ALL, COLUMNS, DESCRIBED, ROWS, plans
from workers.features.fitting import fit
from workers.features.pipeline import Pipeline
from workers.model_process.errors import BadRequest, BodyTooLarge
from workers.serving.protocols import oip_columns, oip_infer, table_rows, tensorflow_serving, tfs_predict

WINDOW = InputWindow(rows=2, horizon=1, time="day")
USED = ("age", "plan", "city")
FEATURES = fit([plan for plan in plans() if plan.column in USED], COLUMNS, ALL)
PIPELINE = Pipeline(FEATURES.model_copy(update={"window": WINDOW}))
SIGNATURE = Signature(
    inputs=(TensorSpec(name="input", dtype="float32", shape=PIPELINE.features.input_shape),),
    outputs=(TensorSpec(name="output", dtype="float32", shape=(1,)),),
    columns=tuple(InputColumn(name=name, type=kind) for name, kind in PIPELINE.columns.items()),
    window=WINDOW,
)
SENT = [{name: row.get(name) for name in USED} for row in ROWS]
STORED = PIPELINE.of_stored(COLUMNS).reshape(3, 2, -1)
WINDOWS = [SENT[start : start + 2] for start in (0, 2, 4)]


def predicted(body: Any) -> np.ndarray:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return tfs_predict.parse_predict(sent, SIGNATURE, PIPELINE).arrays[0]


def inferred(tensors: list[dict[str, Any]], raw: bytes = b"") -> np.ndarray:
    head = json.dumps({"inputs": tensors}).encode()
    return oip_infer.parse_infer(head + raw, str(len(head)) if raw else None, SIGNATURE, PIPELINE).arrays[0]


def test_windows_of_rows_give_the_bits_of_the_training() -> None:
    assert predicted({"instances": [{"rows": rows} for rows in WINDOWS]}).tobytes() == STORED.tobytes()
    columns = {name: [[row[name] for row in rows] for rows in WINDOWS] for name in USED}
    assert predicted({"inputs": columns}).tobytes() == STORED.tobytes()


def test_the_last_rows_of_a_longer_window_are_used() -> None:
    longer = [{"rows": [{"age": 1}, *rows]} for rows in WINDOWS]
    assert predicted({"instances": longer}).tobytes() == STORED.tobytes()


def test_the_encoded_numbers_are_refused_with_the_columns_in_order() -> None:
    with pytest.raises(
        BadRequest, match=r"instance 1: row 1 has .* takes 3 columns in this order: age, plan, ci"
    ):
        predicted({"instances": STORED.tolist()})


def test_one_tensor_for_each_column_gives_the_bits_of_the_training() -> None:
    ages = np.array([row.get("age", np.nan) for row in ROWS], "<f8").tobytes()
    plans_: list[Any] = [row.get("plan") or "" for row in ROWS]
    cities = [str(row.get("city") or "").encode() for row in ROWS]
    texts = b"".join(struct.pack("<I", len(text)) + text for text in cities)
    tensor = inferred(
        [
            {
                "name": "age",
                "shape": [3, 2],
                "datatype": "FP64",
                "parameters": {"binary_data_size": len(ages)},
            },
            {
                "name": "plan",
                "shape": [3, 2],
                "datatype": "BYTES",
                "data": np.reshape(plans_, (3, 2)).tolist(),
            },
            {
                "name": "city",
                "shape": [3, 2],
                "datatype": "BYTES",
                "parameters": {"binary_data_size": len(texts)},
            },
        ],
        ages + texts,
    )
    assert tensor.tobytes() == STORED.tobytes()
    flat = {"name": "plan", "shape": [3, 2], "datatype": "BYTES", "data": plans_}
    assert inferred([flat]).shape == STORED.shape


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"instances": [{"rows": [{"age": 1}]}]},
            "instance 1 has 1 rows; the model takes 2, the oldest first",
        ),
        ({"instances": [{"age": 1}]}, 'instance 1 must be {"rows": [{…}, …]} with 2 rows'),
        ({"instances": [{"rows": [{}, {}], "age": 1}]}, 'instance 1 must be {"rows"'),
        (
            {"instances": [{"rows": [[1], [2]]}]},
            "instance 1: row 1 has 1 value, and the model takes 3 columns",
        ),
        ({"instances": [{"rows": 7}]}, 'instance 1 must be {"rows"'),
        ({"instances": [{"rows": [{}, {"size": 1}]}]}, "instance 1: row 2 has the unknown column 'size'"),
        (
            {"instances": [{"rows": [{}, {}]}, {"rows": [{}, {"age": "old"}]}]},
            "instance 2: column 'age' takes numbers, but row 2 has 'old'",
        ),
        (b'{"instances": [{"rows": [{"age": 1, "age": 2}, {}]}]}', 'has the key "age" twice'),
        ({"inputs": {"age": [[1]]}}, "column 'age' of instance 1 must be a list of 2 values"),
        ({"inputs": {"age": [1, 2]}}, "column 'age' of instance 1 must be a list of 2 values"),
        ({"inputs": {"age": [[1, 2], [1, 2, 3]]}}, "differ in their number of rows: [2, 3]"),
    ],
)
def test_a_wrong_body_is_refused_with_the_place(body: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        predicted(body)
    assert message in str(refused.value)


@pytest.mark.parametrize("shape", [[3], [3, 1], [2, 3], [-1, 2], ["3", 2]])
def test_a_tensor_of_another_shape_is_refused(shape: list[object]) -> None:
    with pytest.raises(BadRequest, match=r"input 'age': shape must be \[instances, 2\]"):
        inferred([{"name": "age", "shape": shape, "datatype": "FP64", "data": [1.0] * 6}])


def test_too_many_rows_in_all_windows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "MAX_INPUT_BYTES", 4 * PIPELINE.features.width * 5)
    with pytest.raises(BodyTooLarge, match="6 rows are too many"):
        predicted({"instances": [{"rows": rows} for rows in WINDOWS]})


def test_the_metadata_of_both_protocols_name_the_rows() -> None:
    assert oip_columns.column_tensors(SIGNATURE)[0] == {"name": "age", "datatype": "FP64", "shape": [-1, 2]}
    (age, *_) = tensorflow_serving.column_tensors(SIGNATURE).values()
    assert [dim["size"] for dim in age["tensor_shape"]["dim"]] == ["-1", "2"]  # type: ignore[index]


def test_an_input_without_values_has_the_shape_of_windows() -> None:
    assert PIPELINE.of_nothing(3).shape == (3, *PIPELINE.features.input_shape)
    assert {*DESCRIBED} > {*PIPELINE.columns}
