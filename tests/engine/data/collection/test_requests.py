"""A row that is sent as JSON gives the same input as the row in the file, whatever its writing."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from jobs.spec.data.column_plans import plan_columns
from jobs.spec.data.columns import ColumnOptions, ColumnRequest, Encode
from jobs.spec.data.features import OneHotFeature
from jobs.spec.data.profile import Column, Profile
from jobs.spec.signature import InputColumn, Signature, TensorSpec
from tests.engine.data.collection import identifiers, labels, unusual_dates
from tests.engine.data.collection.case import TableCase, csv_rows
from tests.engine.helpers import profiled
from workers.engine.data.dataset import columns_of
from workers.engine.data.store import read_arrays
from workers.features.fitting import fit
from workers.features.pipeline import Pipeline
from workers.serving.protocols import oip_infer, tfs_examples, tfs_predict

CASES = [
    case
    for case in (*identifiers.CASES, *labels.CASES, *unusual_dates.SENT)
    if case.source in ("csv", "json_lines") and case.refusal is None
]


class Fitted(NamedTuple):
    """A pipeline that was fitted to a case's rows, and their input."""

    profile: Profile
    pipeline: Pipeline
    x: Any


def fitted(tmp_path: Path, case: TableCase, **options: ColumnOptions) -> Fitted:
    """Return the pipeline for a case, with options by column."""
    path = tmp_path / case.name
    path.write_bytes(case.content)
    file = profiled(
        tmp_path / "version", source=case.source, path=str(path), columns=case.requests, target=case.target
    )
    profile = Profile.model_validate(file.profile)
    stored = columns_of(read_arrays(Path(file.path)), has_images=False)
    features = [column for column in profile.columns if column.name in profile.features]
    pipeline = Pipeline(fit(plan_columns(features, options), stored, np.arange(profile.rows)))
    return Fitted(profile, pipeline, pipeline.of_stored(stored))


def rows_of(case: TableCase, profile: Profile) -> list[dict[str, object]]:
    """Return the rows as a client sends them that has the file."""
    kinds = {column.name: column for column in profile.columns if column.name in profile.features}
    if case.source == "json_lines":
        rows = [json.loads(line, parse_int=_whole) for line in case.content.splitlines()]
    else:
        delimiter = profile.dialect.delimiter if profile.dialect is not None else ","
        rows = list(csv.DictReader(io.StringIO(case.content.decode()), delimiter=delimiter))
    return [{name: _sent(row[name], column) for name, column in kinds.items()} for row in rows]


def _whole(digits: str) -> object:
    # Python reads no longer ones.
    return int(digits) if len(digits) < 4_000 else digits


def _sent(value: Any, column: Column) -> object:
    if value in ("", "NA", None):
        return None
    if column.type in ("number", "integer"):
        return float(value) if column.type == "number" else int(value)
    if column.type == "text":
        return str(value)
    # A client may send digits as a number.
    return int(value) if re.fullmatch("[1-9][0-9]{,99}", str(value)) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stored_rows_and_sent_rows_give_equal_inputs(tmp_path: Path, case: TableCase) -> None:
    profile, pipeline, x = fitted(tmp_path, case)
    rows = rows_of(case, profile)
    columns = {name: [row[name] for row in rows] for name in pipeline.columns}
    np.testing.assert_array_equal(pipeline.of_rows(rows), x)
    np.testing.assert_array_equal(sent_as_tensors(pipeline, columns), x)
    np.testing.assert_array_equal(sent(pipeline, {"instances": rows}), x)
    np.testing.assert_array_equal(sent(pipeline, {"inputs": columns}), x)
    examples = json.dumps({"examples": rows}).encode()
    np.testing.assert_array_equal(
        tfs_examples.parse_examples(examples, signature_of(pipeline), pipeline)[0], x
    )


def signature_of(pipeline: Pipeline) -> Signature:
    return Signature(
        inputs=(TensorSpec(name="input", dtype="float32", shape=(pipeline.features.width,)),),
        outputs=(TensorSpec(name="output", dtype="float32", shape=(1,)),),
        columns=tuple(InputColumn(name=name, type=kind) for name, kind in pipeline.columns.items()),
    )


def sent(pipeline: Pipeline, body: dict[str, Any]) -> Any:
    text = json.dumps(body).encode()
    return tfs_predict.parse_predict(text, signature_of(pipeline), pipeline).arrays[0]


def sent_as_tensors(pipeline: Pipeline, columns: dict[str, list[Any]]) -> Any:
    types = {"number": "FP64", "integer": "INT64"}
    are_whole = {name: all(type(value) is int for value in values) for name, values in columns.items()}
    tensors = [
        {
            "name": name,
            "shape": [len(values)],
            "datatype": types.get(pipeline.columns[name], "INT64" if are_whole[name] else "BYTES"),
            "data": values,
        }
        for name, values in columns.items()
    ]
    body = json.dumps({"inputs": tensors}).encode()
    return oip_infer.parse_infer(body, None, signature_of(pipeline), pipeline).arrays[0]


CITY = csv_rows(
    "city,size,y",
    *(
        f"{name},{row}.5,{row % 2}"
        for row, name in enumerate(
            ["Oslo", "OSLO", "Rome", "Oslo", "oslo.", "Rome", "Paris", "Paris", "Oslo", "Rome"] * 3
        )
    ),
)


@pytest.mark.parametrize("encode", ["one_hot", "embedding", "hash"])
def test_a_merged_category_reads_every_writing_in_requests(tmp_path: Path, encode: Encode) -> None:
    case = TableCase("cities.csv", CITY, requests=(ColumnRequest(name="city", merge_labels=True),))
    pipeline = fitted(tmp_path, case, city=ColumnOptions(encode=encode)).pipeline
    same = pipeline.of_json({"city": ["Oslo", "OSLO ", "oSLo.", "Ｏslo"], "size": [1, 1, 1, 1]}, 4)
    other = pipeline.of_json({"city": ["Rome"], "size": [1]}, 1)
    assert (same == same[0]).all()
    assert (other[0] != same[0]).any()


def test_a_category_that_is_not_merged_reads_its_own_writing_without_blanks(tmp_path: Path) -> None:
    pipeline = fitted(tmp_path, TableCase("cities.csv", CITY)).pipeline
    city = pipeline.of_json({"city": ["OSLO", " OSLO\u00a0", "Oslo", "  "], "size": [1] * 4}, 4)
    np.testing.assert_array_equal(city[0], city[1])
    assert (city[0] != city[2]).any()
    missing = pipeline.of_json({"city": [None], "size": [1]}, 1)
    np.testing.assert_array_equal(city[3], missing[0])


def test_whole_numbers_that_are_encoded_as_words_stay_apart(tmp_path: Path) -> None:
    first = 2**53
    rows = (f"{first + row % 2},{row}.5,{row % 2}" for row in range(40))
    case = TableCase("codes.csv", csv_rows("code,size,y", *rows))
    pipeline = fitted(tmp_path, case, code=ColumnOptions(encode="one_hot")).pipeline
    codes = pipeline.of_json({"code": [first, first + 1], "size": [1, 1]}, 2)
    assert (codes[0] != codes[1]).any()
    words = next(feature.words for feature in pipeline.features.columns if isinstance(feature, OneHotFeature))
    assert {*words} == {str(first), str(first + 1)}
