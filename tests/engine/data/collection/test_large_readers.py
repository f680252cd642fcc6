"""Large files are read in parts, and give the columns of small ones."""

from pathlib import Path

import pytest

from jobs.spec.data.file_limits import DEFAULT_LIMITS
from tests.engine.data.collection import headers, identifiers, labels
from tests.engine.data.collection.case import TableCase
from tests.engine.data.reading.test_large_files import assert_same
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.schema import propose
from workers.engine.data.spilled import Spill
from workers.engine.data.table import Table, read_arrow, read_parquet

CASES = [
    case
    for case in (*identifiers.CASES, *labels.CASES, *headers.EQUAL_NAMES)
    if case.source in ("csv", "json_lines", "parquet", "arrow") and case.refusal is None
]


def read(path: Path, case: TableCase, spill: Spill | None) -> Table:
    match case.source:
        case "csv":
            return read_csv(path, spill=spill)
        case "json_lines":
            return read_json_lines(path, spill=spill)
        case "parquet":
            return read_parquet(path, DEFAULT_LIMITS, spill)
        case _:
            return read_arrow(path, DEFAULT_LIMITS, spill)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_large_file_has_the_columns_and_roles_of_a_small_one(tmp_path: Path, case: TableCase) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.content)
    (tmp_path / "columns").mkdir()
    small, large = read(path, case, None), read(path, case, Spill(tmp_path / "columns", 2, from_bytes=1))
    assert_same(large, small)
    assert large.equal_decimals == small.equal_decimals
    proposed = [
        propose(table, target=case.target, features=None, requests=case.requests) for table in (large, small)
    ]
    assert proposed[0].columns == proposed[1].columns
    assert_same(proposed[0].table, proposed[1].table)
