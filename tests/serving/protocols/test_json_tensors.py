"""TensorFlow Serving's number rules."""

import numpy as np
import pytest

from jobs.spec.signature import TensorSpec
from workers.model_process.dtypes import computed_dtype
from workers.model_process.errors import BadRequest
from workers.serving.protocols.json_tensors import dump, needs_check, parse, to_array


def read(text: str, dtype: str = "float32", shape: tuple[int | None, ...] = ()) -> np.ndarray:
    body = text.encode()
    return to_array(parse(body), TensorSpec(name="x", dtype=dtype, shape=shape), strict=needs_check(body, 0))


def test_floats_take_any_number() -> None:
    np.testing.assert_array_equal(read("[1, 2.5, -3e2]"), np.array([1, 2.5, -300], np.float32))


def test_floats_beyond_float32_become_infinite_or_zero() -> None:
    np.testing.assert_array_equal(read("[1e39, -1e400, 1e-60]"), np.array([np.inf, -np.inf, 0], np.float32))


def test_nan_and_infinities_are_accepted() -> None:
    np.testing.assert_array_equal(
        read("[NaN, Infinity, -Infinity]"), np.array([np.nan, np.inf, -np.inf], np.float32)
    )


def test_whole_numbers_too_long_for_64_bits_are_floats() -> None:
    np.testing.assert_allclose(
        read("[123456789012345678901234567890, 1]"), np.array([1.2345679e29, 1], np.float32)
    )


def test_whole_numbers_that_no_float_can_hold_are_refused() -> None:
    with pytest.raises(BadRequest, match="an integer that no float can hold"):
        read(f"[1{'0' * 400}, 1]")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_want_integer_literals(dtype: str) -> None:
    assert read("[0, 7]", dtype).dtype == computed_dtype(dtype)
    with pytest.raises(BadRequest, match=r"1\.0 .*is not of expected type: u?int"):
        read("[1, 1.0]", dtype)


@pytest.mark.parametrize(("dtype", "text"), [("int8", "[128]"), ("uint8", "[-1]"), ("int32", "[2147483648]")])
def test_integers_out_of_range_are_refused_not_wrapped(dtype: str, text: str) -> None:
    with pytest.raises(BadRequest, match="out of range"):
        read(text, dtype)


@pytest.mark.parametrize(
    ("dtype", "largest"), [("int64", 2**31 - 1), ("uint64", 2**32 - 1), ("int32", 2**31 - 1)]
)
def test_integers_of_64_bits_take_what_the_model_computes_in(dtype: str, largest: int) -> None:
    assert read(f"[{largest}]", dtype)[0] == largest
    for beyond in (largest + 1, 2**63, 2**64, 10**30):
        # Beyond 64 bits, numbers are read as floats.
        with pytest.raises(BadRequest, match=r"Type: Number is not of expected type|out of range"):
            read(f"[0, {beyond}]", dtype)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "b": [2], "a": 1}', '[{"x": NaN, "a": {"a": 1, "\\u0061": 2}}]', '{"a": "b", "a": "b"}'],
)
def test_a_key_that_an_object_has_twice_is_named(text: str) -> None:
    body = text.encode()
    with pytest.raises(BadRequest, match='An object has the key "a" twice'):
        needs_check(body, len(parse(body)))


def test_equal_keys_of_different_objects_are_no_duplicates() -> None:
    assert needs_check(b'[{"a": 1}, {"a": "b"}]', 2)
    assert not needs_check(b'[{"a": 1}, {"a": 2}]', 2)


@pytest.mark.parametrize("text", ["[true, 1.5]", "[1.5, false]", "[true]"])
def test_booleans_are_not_numbers(text: str) -> None:
    with pytest.raises(BadRequest, match=r"Type: (True|False) is not of expected type: float"):
        read(text)


def test_booleans_are_booleans() -> None:
    assert read("[true, false]", "bool").tolist() == [True, False]
    with pytest.raises(BadRequest, match="expected type: bool"):
        read("[true, 1]", "bool")


@pytest.mark.parametrize(
    ("text", "kind"), [('["1.5"]', "String"), ("[null]", "Null"), ('[{"b64": ""}]', "Object")]
)
def test_other_values_are_named(text: str, kind: str) -> None:
    with pytest.raises(BadRequest, match=f"Type: {kind}"):
        read(text)


def test_an_error_about_ragged_lists_names_level_and_size() -> None:
    with pytest.raises(BadRequest, match="unexpected size: 1 at level: 1 expected size: 2"):
        read("[[1, 2], [3]]", shape=(2,))


def test_lists_mixed_with_single_values_are_refused() -> None:
    with pytest.raises(BadRequest, match="mixed at level: 1"):
        read("[1, [2]]")


def test_the_shape_must_match_the_signature() -> None:
    assert read("[[1, 2, 3]]", shape=(None,)).shape == (1, 3)
    with pytest.raises(BadRequest, match=r"shape \[1, 3\]; the model takes \[\?, 4\]"):
        read("[[1, 2, 3]]", shape=(4,))


@pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b"\xff", b"[" * 100_000])
def test_invalid_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest, match="JSON Parse error"):
        parse(body)


@pytest.mark.parametrize("coding", ["utf-16", "utf-32", "latin-1"])
def test_json_in_another_coding_is_refused(coding: str) -> None:
    """The checks of a body search its bytes: a true in UTF-16 would become 1."""
    with pytest.raises(BadRequest, match="JSON Parse error"):
        parse('{"ä": [true, 1.5]}'.encode(coding))


def test_a_mark_of_utf_8_before_the_json_is_ignored() -> None:
    assert parse("\ufeff[1]".encode()) == [1]


def test_floats_are_written_in_their_shortest_form_and_whole_ones_keep_their_point() -> None:
    array = np.array([[0.1, 1435774336, 3e-5]], np.float32)
    assert dump({"p": array}) == b'{"p":[[0.1,1435774300.0,0.00003]]}'


def test_non_finite_values_are_null() -> None:
    array = np.array([[0.1, np.nan, np.inf, -np.inf]], np.float32)
    assert dump({"p": array}) == b'{"p":[[0.1,null,null,null]]}'


def test_rows_of_rank_one_outputs_are_written_too() -> None:
    array = np.array([0.1, np.nan], np.float32)
    assert dump([{"p": value} for value in array]) == b'[{"p":0.1},{"p":null}]'


@pytest.mark.parametrize("innermost", ["[]", "[1]", "[[], []]"])
def test_more_levels_than_an_array_can_have_are_refused(innermost: str) -> None:
    with pytest.raises(BadRequest, match="nested too deeply"):
        read("[" * 80 + innermost + "]" * 80)


def test_an_empty_list_among_others_is_named() -> None:
    with pytest.raises(BadRequest, match="unexpected size: 0 at level: 1 expected size: 1"):
        read("[[[]], []]")
