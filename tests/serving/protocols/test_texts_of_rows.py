"""Texts of table rows are read by the rules of the data in every protocol."""

import json
import struct
from typing import Any

import numpy as np
import pytest

from jobs.spec.data.column_plans import plan_column
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.number_format import NumberFormat
from jobs.spec.data.profile import Column
from jobs.spec.signature import InputColumn, Signature, TensorSpec
from workers.features.fitting import fit
from workers.features.pipeline import Pipeline
from workers.features.values import TEXT
from workers.model_process.errors import BadRequest
from workers.serving.protocols import oip_infer, tfs_predict

DOLLARS = NumberFormat(thousands=",", currency="$", parentheses=True)
COLUMNS = {
    "price": np.array([5339.33, -252.5, np.nan, 7.0]),
    "plan": np.array(["None", "pro", "", "free"], TEXT),
}
TEXTS = {"price": ["$5,339.33", "($252.50)", "n/a", "7"], "plan": ["None", "pro", "NA", "free"]}
DESCRIBED = (
    Column(name="price", dtype="float64", type="number", missing=1, number_format=DOLLARS),
    Column(name="plan", dtype="text", type="category", distinct=3, gap_words=("NA",)),
)
PLANS = tuple(plan_column(column, ColumnOptions()) for column in DESCRIBED)
PIPELINE = Pipeline(fit(PLANS, COLUMNS, np.arange(4)))
SIGNATURE = Signature(
    inputs=(TensorSpec(name="input", dtype="float32", shape=(PIPELINE.features.width,)),),
    outputs=(TensorSpec(name="output", dtype="float32", shape=(1,)),),
    columns=tuple(InputColumn(name=name, type=kind) for name, kind in PIPELINE.columns.items()),
)
STORED = PIPELINE.of_stored(COLUMNS)


def predicted(body: Any) -> np.ndarray:
    return tfs_predict.parse_predict(json.dumps(body).encode(), SIGNATURE, PIPELINE).arrays[0]


def inferred(tensors: list[dict[str, Any]], raw: bytes = b"") -> np.ndarray:
    head = json.dumps({"inputs": tensors}).encode()
    return oip_infer.parse_infer(head + raw, str(len(head)) if raw else None, SIGNATURE, PIPELINE).arrays[0]


def test_texts_give_the_bits_of_the_training_by_row_and_by_column() -> None:
    rows = [dict(zip(TEXTS, row, strict=True)) for row in zip(*TEXTS.values(), strict=True)]
    assert predicted({"instances": rows}).tobytes() == STORED.tobytes()
    assert predicted({"inputs": TEXTS}).tobytes() == STORED.tobytes()


def test_texts_give_the_bits_of_the_training_in_tensors() -> None:
    tensors = [
        {"name": name, "shape": [4], "datatype": "BYTES", "data": texts} for name, texts in TEXTS.items()
    ]
    assert inferred(tensors).tobytes() == STORED.tobytes()


def test_texts_give_the_bits_of_the_training_in_binary_tensors() -> None:
    tensors, raw = [], b""
    for name, texts in TEXTS.items():
        body = b"".join(struct.pack("<I", len(text)) + text.encode() for text in texts)
        tensors.append(
            {
                "name": name,
                "shape": [4],
                "datatype": "BYTES",
                "parameters": {"binary_data_size": len(body)},
            }
        )
        raw += body
    assert inferred(tensors, raw).tobytes() == STORED.tobytes()


def test_a_text_in_another_format_is_refused_with_an_example() -> None:
    with pytest.raises(BadRequest, match=r"texts such as '\(\$1,234\.5\)', but row 1 has '€ 5'"):
        predicted({"instances": [{"price": "€ 5"}]})
