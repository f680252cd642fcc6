"""Large files are read in parts, and give the columns of small ones."""

from pathlib import Path

import pytest

from jobs.spec.data.file_limits import DEFAULT_LIMITS
from tests.engine.data.collection import (
    dates,
    exports,
    gaps,
    headers,
    identifiers,
    labels,
    magnitudes,
    numbers,
    quotes,
    sentinels,
    times,
)
from tests.engine.data.collection.case import TableCase
from tests.engine.data.reading.test_large_files import assert_same
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.schema import propose
from workers.engine.data.spilled import Spill
from workers.engine.data.table import Table, read_arrow, read_parquet

CASES = [
    case
    for module in (
        *(dates, exports, gaps, headers, identifiers, labels),
        *(magnitudes, numbers, quotes, sentinels, times),
    )
    for case in module.CASES
    if case.source in ("csv", "json_lines", "parquet", "arrow") and case.refusal is None
]


def read(path: Path, case: TableCase, spill: Spill | None) -> Table:
    match case.source:
        case "csv":
            rules = [each.name for each in case.requests if each.number_format or each.gap_words is not None]
            return read_csv(path, spill=spill, texts=rules)
        case "json_lines":
            return read_json_lines(path, spill=spill)
        case "parquet":
            return read_parquet(path, DEFAULT_LIMITS, spill)
        case _:
            return read_arrow(path, DEFAULT_LIMITS, spill)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_large_file_has_the_columns_roles_and_offers_of_a_small_one(
    tmp_path: Path, spill: Spill, case: TableCase
) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.content)
    small, large = read(path, case, None), read(path, case, spill)
    assert_same(large, small)
    renamed = dict(small.renamed)
    requests = [
        request.model_copy(update={"name": renamed.get(request.name, request.name)})
        for request in case.requests
    ]
    proposed = [
        propose(table, target=case.target, features=None, requests=requests) for table in (large, small)
    ]
    for part in ("columns", "target", "findings", "offers"):
        assert getattr(proposed[0], part) == getattr(proposed[1], part)
    assert_same(proposed[0].table, proposed[1].table)
