"""Bodies with one numeric tensor: the fast parser agrees with the general one, or leaves the body to it."""

import importlib
import json
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import BadRequest
from workers.serving.protocols import plain_numbers, tfs_predict
from workers.serving.protocols.plain_numbers import parse_plain_numbers


def spec_of(shape: tuple[int | None, ...] = (None,), dtype: Any = "float32") -> TensorSpec:
    return TensorSpec(name="x", dtype=dtype, shape=shape)


def general(body: bytes, spec: TensorSpec, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the general parser's result, the array and whether rows were given, or its refusal."""
    with monkeypatch.context() as patch:
        patch.setattr(tfs_predict, "parse_plain_numbers", lambda *_: None)
        try:
            call = tfs_predict.parse_predict(body, Signature(inputs=(spec,), outputs=(spec,)))
        except BadRequest as error:
            return str(error)
    return call.arrays[0], call.rows


BODIES = pytest.mark.parametrize(
    ("body", "spec"),
    [
        (b'{"instances": [[1, 2.5], [-3e2, 0.1]]}', spec_of((2,))),
        (b'{"instances": [1, 2.5]}', spec_of(())),
        (b'{"inputs":[[[1],[2]],[[3],[4]]]}', spec_of((2, 1))),
        (b'{\n "instances" : [ [1, 2] ,\t[3, 4] ] }\r\n', spec_of((None,))),
        (b'{"instances": [[1, -2147483648]]}', spec_of((2,), "int32")),
        (b'{"instances": [[1, 2147483647]]}', spec_of((2,), "int64")),
        (b'{"instances": [[1, 255]]}', spec_of((2,), "uint8")),
        (b'{"instances": [[1e39, -1e300, 9007199254740993]]}', spec_of((3,))),
        (bytearray(b'{"instances": [[1, 2]]}'), spec_of((2,))),
        (json.dumps({"instances": np.arange(80_000).reshape(-1, 4).tolist()}).encode(), spec_of((4,))),
    ],
)


@BODIES
def test_a_tensor_of_numbers_is_read_as_by_the_general_parser(
    body: bytes, spec: TensorSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = parse_plain_numbers(body, spec)
    expected, rows = general(body, spec, monkeypatch)
    assert parsed is not None
    assert (parsed.key == "instances") == rows
    assert parsed.array.dtype == expected.dtype
    np.testing.assert_array_equal(parsed.array, expected)


@BODIES
def test_without_the_extra_fast_json_the_answer_is_the_same(
    body: bytes, spec: TensorSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, rows = general(body, spec, monkeypatch)
    monkeypatch.setattr(plain_numbers, "_PARSER", None)
    call = tfs_predict.parse_predict(body, Signature(inputs=(spec,), outputs=(spec,)))
    assert call.rows == rows
    np.testing.assert_array_equal(call.arrays[0], expected)


def test_the_module_is_imported_without_the_extra_fast_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simdjson", None)
    try:
        importlib.reload(plain_numbers)
        assert plain_numbers.parse_plain_numbers(b'{"instances": [1]}', spec_of(())) is None
    finally:
        monkeypatch.undo()
        importlib.reload(plain_numbers)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[[1]]",
        b"1",
        b'{"instances": [[1]]} x',
        b'{"instances": [[1]], "instances": [[2]]}',
        b'{"instances": [[1]], "inputs": [[2]]}',
        b'{"instances": [[1]], "signature_name": "serving_default"}',
        b'{"inst1ances": [[1]]}',
        b'{"instances": []}',
        b'{"instances": [[]]}',
        b'{"instances": 1}',
        b'{"instances": [[1, 2], [3]]}',
        b'{"instances": [[1, [2]], [3, 4]]}',
        b'{"instances": [[[1], 2], [3, 4]]}',
        b'{"instances": [[1, true]]}',
        b'{"instances": [[1, null]]}',
        b'{"instances": [[1, "2"]]}',
        b'{"instances": [[1, {}]]}',
        b'{"instances": [[1, NaN]]}',
        b'{"instances": [[1, 1e400]]}',
        b'{"instances": [[1, 1 2]]}',
        b'{"instances": [[1, 123456789012345678901234567890]]}',
        b'{"instances": [[1, 2, 3]]}',
        b'{"instances": [{"x": [1, 2]}]}',
        b'{"instances": [["\xff", 2]]}',
        b"[" * 3000 + b"]" * 3000,
    ],
)
def test_any_other_body_is_left_to_the_general_parser(body: bytes) -> None:
    assert parse_plain_numbers(body, spec_of((2,))) is None


@pytest.mark.parametrize("body", [b"[[1, 2.0]]", b"[[1, 4294967296]]", b"[[1, 9223372036854775808]]"])
def test_integers_out_of_range_are_left_to_the_general_parser(body: bytes) -> None:
    assert parse_plain_numbers(b'{"instances": %b}' % body, spec_of((2,), "int32")) is None


def test_a_long_first_row_among_short_ones_takes_no_memory() -> None:
    # The structure of rows that are all as long as the first is 3,000 times as long as this body.
    body = b'{"instances": [[%b]%b]}' % (b",".join([b"1"] * 20_000), b",[1]" * 20_000)
    tracemalloc.start()
    try:
        assert parse_plain_numbers(body, spec_of((None,))) is None
        assert tracemalloc.get_traced_memory()[1] < 100 * len(body)
    finally:
        tracemalloc.stop()


def test_booleans_are_left_to_the_general_parser() -> None:
    assert parse_plain_numbers(b'{"instances": [[1]]}', spec_of((1,), "bool")) is None


def test_an_unusual_body_does_not_hinder_the_next_one() -> None:
    for body in (b'{"instances": [[1, true]]}', b'{"instances": [[1'):
        assert parse_plain_numbers(body, spec_of()) is None
        parsed = parse_plain_numbers(b'{"instances": [[1, 2]]}', spec_of())
        assert parsed is not None
        assert parsed.array.tolist() == [[1, 2]]


numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3)
)
values = st.recursive(
    st.one_of(numbers, numbers, numbers, st.none(), st.booleans(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner).flatmap(lambda one: st.just(list(one) * 3))
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(
    value=values,
    key=st.sampled_from(["instances", "inputs"]),
    shape=st.sampled_from([(), (None,), (3,), (None, None), (None, 1)]),
    dtype=st.sampled_from(["float32", "int32", "uint8", "bool"]),
)
def test_every_result_equals_that_of_the_general_parser(
    value: Any, key: str, shape: tuple[int | None, ...], dtype: str
) -> None:
    body, spec = json.dumps({key: value}).encode(), spec_of(shape, dtype)
    parsed = parse_plain_numbers(body, spec)
    if parsed is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        expected, rows = general(body, spec, patch)
    assert (parsed.key == "instances") == rows
    np.testing.assert_allclose(parsed.array, expected, rtol=1e-7)
    assert parsed.array.dtype == expected.dtype
