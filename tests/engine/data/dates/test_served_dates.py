"""Rows with dates in many formats give a model the same input from the file and from requests."""

import csv
import datetime
import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.spec.data.column_plans import plan_columns
from jobs.spec.data.dates.formats import write_date
from jobs.spec.data.features import Features
from jobs.spec.data.profile import Profile
from jobs.spec.signature import InputColumn, Signature, TensorSpec
from tests.engine.helpers import csv_file, profiled
from workers.engine.data import spilled
from workers.engine.data.reading import csv_file as csv_reader
from workers.engine.data.spilled import Spill
from workers.engine.data.store import read_arrays
from workers.features.fitting import fit
from workers.features.pipeline import Pipeline
from workers.model_process.errors import BadRequest
from workers.serving.protocols import oip_infer, tfs_predict

FORMATS = {
    "american": "%m/%d/%Y",
    "european": "%d/%m/%Y %H:%M:%S",
    "afternoon": "%m/%d/%Y %I:%M %p",
    "short": "%d/%m/%y",
    "names": "%d-%b-%Y",
    "long": "%B %d, %Y",
    "mail": "%a, %d %b %Y %H:%M:%S %z",
    "iso": "%Y-%m-%dT%H:%M:%S.%fZ",
    "month": "%Y-%m",
    "quarter": "%YQ%q",
    "order_date": "%Y%m%d",
}
ROWS = 120
IMPOSSIBLE = "13/32/2020"


def table() -> str:
    """Return a table with a column in each format, gaps, and an impossible date in one."""
    first, text = datetime.datetime(2020, 11, 3, 9, 41, 7, 250_000), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*FORMATS, "y"])
    for row in range(ROWS):
        moment = first + datetime.timedelta(days=5 * row, hours=7 * row)
        dates = [
            "n/a" if (row + place) % 17 == 3 else write_date(moment, form)
            for place, form in enumerate(FORMATS.values())
        ]
        if row == ROWS // 2:
            dates[0] = IMPOSSIBLE
        writer.writerow([*dates, row % 2])
    return text.getvalue()


class Served:
    """A profiled table with the pipeline that is fitted to it and restored from its file."""

    def __init__(self, folder: Path) -> None:
        text = table()
        file = profiled(folder, source="csv", path=csv_file(folder.parent, text), target="y")
        self.profile = Profile.model_validate(file.profile)
        arrays = read_arrays(Path(file.path))
        self.columns = {str(name): arrays[f"column_{place}"] for place, name in enumerate(arrays["columns"])}
        described = [column for column in self.profile.columns if column.role == "feature"]
        fitted = fit(plan_columns(described, {}), self.columns, np.arange(ROWS))
        self.pipeline = Pipeline(Features.model_validate_json(fitted.model_dump_json()))
        self.stored = self.pipeline.of_stored(self.columns)
        rows = csv.DictReader(io.StringIO(text))
        self.rows = [{name: value for name, value in row.items() if name != "y"} for row in rows]
        self.signature = Signature(
            inputs=(TensorSpec(name="input", dtype="float32", shape=(self.stored.shape[1],)),),
            outputs=(TensorSpec(name="output", dtype="float32", shape=(1,)),),
            columns=tuple(InputColumn(name=n, type=kind) for n, kind in self.pipeline.columns.items()),
        )

    def predicted(self, body: Any) -> Any:
        sent = json.dumps(body).encode()
        return tfs_predict.parse_predict(sent, self.signature, self.pipeline).arrays[0]

    def inferred(self, tensors: list[dict[str, Any]], raw: bytes = b"") -> Any:
        head = json.dumps({"inputs": tensors}).encode()
        length = str(len(head)) if raw else None
        return oip_infer.parse_infer(head + raw, length, self.signature, self.pipeline).arrays[0]


@pytest.fixture(params=["small", "large"])
def served(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    if request.param == "large":
        monkeypatch.setattr(Spill, "for_size", lambda self, size: self)
        monkeypatch.setattr(spilled, "SMALL_COLUMN_BYTES", 1)
        monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 4096)
    return Served(tmp_path / "version")


def sent_as_texts(served: Served) -> list[dict[str, str | None]]:
    """Return the rows of the file; an impossible date, which is missing there, is refused in a request."""
    return [{n: None if v == IMPOSSIBLE else v for n, v in row.items()} for row in served.rows]


def test_rows_of_the_file_give_the_same_input_in_every_protocol(served: Served) -> None:
    assert {column.type for column in served.profile.columns if column.name != "y"} == {"date"}
    rows = sent_as_texts(served)
    by_column = {name: [row[name] for row in rows] for name in FORMATS}
    expected = served.stored.tobytes()
    assert served.predicted({"instances": rows}).tobytes() == expected
    assert served.predicted({"inputs": by_column}).tobytes() == expected
    texts = {name: [value or "" for value in values] for name, values in by_column.items()}
    tensors: list[dict[str, Any]] = [
        {"name": name, "shape": [ROWS], "datatype": "BYTES", "data": values} for name, values in texts.items()
    ]
    assert served.inferred(tensors).tobytes() == expected
    raw = {
        name: b"".join(struct.pack("<I", len(value.encode())) + value.encode() for value in values)
        for name, values in texts.items()
    }
    binary: list[dict[str, Any]] = [
        {
            "name": name,
            "shape": [ROWS],
            "datatype": "BYTES",
            "parameters": {"binary_data_size": len(raw[name])},
        }
        for name in texts
    ]
    assert served.inferred(binary, b"".join(raw.values())).tobytes() == expected


def test_the_same_moments_in_iso_8601_give_the_same_input(served: Served) -> None:
    moments = {name: np.datetime_as_string(served.columns[name]).tolist() for name in FORMATS}
    rows = [
        {name: None if moments[name][row] == "NaT" else moments[name][row] for name in FORMATS}
        for row in range(ROWS)
    ]
    assert served.predicted({"instances": rows}).tobytes() == served.stored.tobytes()


def test_whole_numbers_are_dates_where_the_file_has_such(served: Served) -> None:
    column = next(column for column in served.profile.columns if column.name == "order_date")
    assert column.date_format == "%Y%m%d"
    one = served.predicted({"instances": [{"order_date": 20201224}]})
    assert one.tobytes() == served.predicted({"instances": [{"order_date": "2020-12-24"}]}).tobytes()
    tensor = {"name": "order_date", "shape": [1], "datatype": "INT64", "data": [20201224]}
    assert served.inferred([tensor]).tobytes() == one.tobytes()


def test_a_text_that_is_no_date_is_refused_with_the_format(served: Served) -> None:
    for body in ({"instances": [{"american": "24/12/2020"}]}, {"inputs": {"american": ["24/12/2020"]}}):
        with pytest.raises(BadRequest, match=r'"12/24/2021" \(%m/%d/%Y\).* row 1 has \'24/12/2020\''):
            served.predicted(body)


def test_the_impossible_date_is_a_misfit_of_its_column(served: Served) -> None:
    american = next(column for column in served.profile.columns if column.name == "american")
    gaps = sum(row["american"] in ("n/a", IMPOSSIBLE) for row in served.rows)
    assert american.misfits is not None
    assert american.misfits.examples == (IMPOSSIBLE,)
    assert served.rows[american.misfits.rows[0] - 1]["american"] == IMPOSSIBLE
    assert american.missing == gaps
