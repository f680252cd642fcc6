"""A cell that is sent as the text in the file gives the same input as the file, or is refused."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from jobs.spec.data.features import positions_of
from tests.engine.data.collection import (
    dates,
    exports,
    gaps,
    magnitudes,
    numbers,
    quotes,
    sentinels,
    times,
)
from tests.engine.data.collection.case import TableCase
from tests.engine.data.collection.test_requests import fitted
from workers.features.values import BadValue

CASES = [
    case
    for module in (dates, exports, gaps, magnitudes, numbers, quotes, sentinels, times)
    for case in module.CASES
    if case.source == "csv" and case.refusal is None and len(case.content) < 2_000
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_text_of_the_file_is_read_alike_in_a_request(tmp_path: Path, case: TableCase) -> None:
    profile, pipeline, x = fitted(tmp_path, case)
    delimiter = profile.dialect.delimiter if profile.dialect is not None else ","
    rows = list(
        csv.DictReader(io.StringIO(case.content.decode("utf-8-sig").lstrip("\ufeff")), delimiter=delimiter)
    )
    misfits = {column.name: column.misfits for column in profile.columns}
    start = 0
    for feature in pipeline.features.columns:
        end, name, refused = start + positions_of(feature), feature.column, 0
        for row, values in enumerate(rows):
            try:
                sent = pipeline.of_rows([{name: values[name]}])[0]
            except BadValue:
                refused += 1
                continue
            np.testing.assert_array_equal(sent[start:end], x[row][start:end], f"{name}: {values[name]!r}")
        # In training, misfits are missing values.
        misfit = misfits[name]
        assert refused <= (misfit.count if misfit is not None else 0)
        start = end
