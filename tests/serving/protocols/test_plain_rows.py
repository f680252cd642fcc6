"""Rows of numbers that are read at once have the bits of the general way."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.spec.data.features import Features, NumberFeature
from jobs.spec.signature import InputWindow
from tests.features.making import COLUMNS
from tests.serving.protocols.test_table_rows import PIPELINE as MIXED
from workers.features.pipeline import Pipeline
from workers.model_process.errors import BodyTooLarge
from workers.serving.protocols import table_rows
from workers.serving.protocols.plain_rows import parse_plain_rows
from workers.serving.protocols.table_rows import read_instances

FEATURES = Features(
    columns=(
        NumberFeature(column="age", type="number", fill=31.25, indicator=True),
        NumberFeature(column="rooms", type="integer", fill=2.0, indicator=False),
        NumberFeature(column="member", type="boolean", fill=1.0, indicator=True),
    )
)
ROWS = Pipeline(FEATURES)
WINDOWS = Pipeline(FEATURES.model_copy(update={"window": InputWindow(rows=2, horizon=0, time="day")}))
NUMBERS = st.sampled_from([0, 1, -5, 2**53 + 1, 3.4028235e38, 3.4028236e38, -1e300, 1e-50]) | st.floats(
    allow_nan=False, allow_infinity=False
)
ROW = st.tuples(NUMBERS, st.integers(-(10**15), 10**15), st.sampled_from([0, 1, 1.0]))


@settings(deadline=None)
@given(rows=st.lists(ROW, min_size=2, max_size=4).filter(lambda rows: len(rows) % 2 == 0), key=st.booleans())
def test_rows_and_windows_have_the_bits_of_the_general_way(rows: list[Any], key: bool) -> None:
    named = "instances" if key else "inputs"
    for pipeline, instances in (
        (ROWS, rows),
        (WINDOWS, [rows[at : at + 2] for at in range(0, len(rows), 2)]),
    ):
        body = json.dumps({named: instances}).encode()
        plain = parse_plain_rows(body, pipeline)
        assert plain is not None
        assert plain.key == named
        general = read_instances(json.loads(body)[named], pipeline, frozenset())
        assert plain.array.dtype == general.dtype
        assert (plain.array.shape, plain.array.tobytes()) == (general.shape, general.tobytes())


@pytest.mark.parametrize(
    "body",
    [
        {"instances": [[1, 2]]},
        {"instances": [[1, 2.5, 1]]},
        {"instances": [[1, 2, 2]]},
        {"instances": [[1, None, 1]]},
        {"instances": [[1, 2, True]]},
        {"instances": [{"age": 1}]},
        {"instances": []},
        {"inputs": {"age": [1], "rooms": [2], "member": [1]}},
        {"instances": [[1, 2, 1]], "signature_name": ""},
    ],
)
def test_other_bodies_are_left_to_the_general_way(body: Any) -> None:
    assert parse_plain_rows(json.dumps(body).encode(), ROWS) is None


def test_tables_with_other_columns_are_left_to_the_general_way() -> None:
    body = json.dumps({"instances": [[0.5] * len(COLUMNS)]}).encode()
    assert MIXED.numeric_rows is None
    assert parse_plain_rows(body, MIXED) is None


def test_rows_that_become_too_many_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "MAX_INPUT_BYTES", 4 * FEATURES.width)
    with pytest.raises(BodyTooLarge, match="send at most 1"):
        parse_plain_rows(b'{"instances": [[1, 2, 1], [1, 2, 1]]}', ROWS)


def test_a_number_beyond_32_bits_is_a_gap() -> None:
    plain = parse_plain_rows(b'{"instances": [[1e39, 2, 1]]}', ROWS)
    assert plain is not None
    assert plain.array.tolist() == [[31.25, 1.0, 2.0, 1.0, 0.0]]
