"""Converts JSON values to arrays and back, by TensorFlow Serving's number rules.

Floats accept any JSON number (values beyond float32 become infinite), integers only integer literals in
range, booleans only true and false. NaN, Infinity and -Infinity are read although JSON lacks them. Unlike in
TensorFlow Serving, they are written as null, a key that an object has twice is an error, and so are bytes
after the first value.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from jobs.spec.signature import TensorSpec
from workers.model_process.dtypes import TYPES, computed_dtype
from workers.model_process.errors import BadRequest

Array = npt.NDArray[Any]
Body = bytes | bytearray

# TensorFlow's names, where they differ from NumPy's.
_NAMES = {"float32": "float", "float64": "double"}
_SHOWN_CHARACTERS = 80
_ACCEPTED: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}


def parse(body: Body) -> Any:
    """Return the value in a JSON body.

    Raises:
        BadRequest: it is not JSON, even with NaN and infinities allowed.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    if not body:
        raise BadRequest("JSON Parse error: The document is empty")
    return parse_unique(body)


def parse_unique(body: Body) -> Any:
    """Parse JSON with the standard library, which also reads NaN, Infinity and 1e400, and sees all keys.

    Raises:
        BadRequest: it is not JSON in UTF-8, or an object has a key twice.
    """
    try:
        # Not the bytes, whose encoding it would guess: the checks of bodies search them for ASCII.
        return json.loads(body.decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise BadRequest(f"JSON Parse error: {error.msg} at offset: {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"JSON Parse error: {error}") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object.

    Raises:
        BadRequest: a key is given twice.
    """
    unique: dict[str, Any] = {}
    for key, value in pairs:
        if key in unique:
            raise BadRequest(
                f"JSON Parse error: An object has the key {quote_value(key)} twice; give it once"
            )
        unique[key] = value
    return unique


def quote_value(value: object) -> str:
    """Return a value's first characters as JSON, for messages."""
    text = ""
    # Not `dumps`: the value may be as long as the body.
    for part in json.JSONEncoder().iterencode(value):
        text += part
        if len(text) > _SHOWN_CHARACTERS:
            return f"{text[:_SHOWN_CHARACTERS]}..."
    return text


def needs_check(body: Body, strings: int) -> bool:
    """Return whether a body may have values that NumPy would silently convert.

    These are true and false, which become numbers, and strings: one long string among numbers makes an array
    of many strings with that length.

    Args:
        body: the JSON.
        strings: how many strings it has that are no tensor values, keys of objects included.

    Raises:
        BadRequest: an object has a key twice. orjson keeps the last one, so `strings` counts one of them.
    """
    if body.count(b'"') > 2 * strings:
        parse_unique(body)
        return True
    # Searching one letter is many times faster than a word, and most bodies contain only digits
    return (b"r" in body and b"true" in body) or (b"l" in body and b"false" in body)


def to_array(value: object, spec: TensorSpec, *, strict: bool) -> Array:
    """Return `value` as an array with the dtype that the tensor is computed in, batch dimension first.

    Args:
        value: nested lists, as parsed.
        spec: the input.
        strict: check every element, see `needs_check`.

    Raises:
        BadRequest: it is ragged, out of range, or has the wrong type or shape.
    """
    try:
        if strict:
            _check_leaves(value, spec.dtype)
        array = _cast(_as_array(value, spec), value, spec)
    except RecursionError:
        raise BadRequest(f"Input {spec.name!r} is nested too deeply") from None
    check_shape(array.shape, spec)
    return array


def check_shape(shape: Sequence[int], spec: TensorSpec, *, any_size: str = "?") -> None:
    """Check a shape, batch dimension first, against the signature.

    Args:
        shape: the sizes.
        spec: the tensor.
        any_size: how the message writes sizes that the signature leaves open.

    Raises:
        BadRequest: the tensor may not have this shape. Rows without a value are refused for every model: they
            cost nothing to send, and few layers can compute them.
    """
    fits = len(shape) == len(spec.shape) + 1 and all(
        want in (None, have) for want, have in zip(spec.shape, shape[1:], strict=True)
    )
    if fits and 0 not in shape[1:]:
        return
    sizes = ", ".join(any_size if size is None else str(size) for size in (None, *spec.shape))
    if not fits:
        raise BadRequest(f"Input {spec.name!r} has shape {list(shape)}; the model takes [{sizes}]")
    raise BadRequest(f"Input {spec.name!r} has shape {list(shape)}; each row of [{sizes}] needs a value")


def _as_array(value: object, spec: TensorSpec) -> Array:
    try:
        return np.asarray(value)
    except ValueError:
        _explain_ragged(value)
        # Then NumPy has refused the number of levels.
        raise BadRequest(f"Input {spec.name!r} is nested too deeply") from None


def _cast(array: Array, value: object, spec: TensorSpec) -> Array:
    target = TYPES[computed_dtype(spec.dtype)].numpy
    if array.dtype == target:
        return array
    kind, target_kind = array.dtype.kind, target.kind
    # NumPy gives empty lists the type float64.
    if array.size == 0:
        return array.astype(target)
    if target_kind == "f" and kind in "iuf":
        # Too large numbers become infinite, as in TensorFlow Serving.
        with np.errstate(over="ignore"):
            return array.astype(target)
    if target_kind in "iu" and kind in "iu":
        return in_range(array, spec)
    # Mixed types, booleans, text or integers beyond 64 bits: name the invalid one, or convert via float64
    _check_leaves(value, spec.dtype)
    if target_kind == "f":
        try:
            with np.errstate(over="ignore"):
                return np.array(value, np.float64).astype(target)
        except OverflowError:
            raise BadRequest(f"Input {spec.name!r} has an integer that no float can hold") from None
    raise BadRequest(f"Input {spec.name!r} has an integer beyond 64 bits: out of range for {target.name}")


def in_range(array: Array, spec: TensorSpec) -> Array:
    """Return integers in the dtype that the tensor is computed in.

    Raises:
        BadRequest: it cannot hold one of them.
    """
    target: np.dtype[Any] = TYPES[computed_dtype(spec.dtype)].numpy
    bounds = np.iinfo(target)
    for extreme in (int(array.min()), int(array.max())):
        if not bounds.min <= extreme <= bounds.max:
            raise BadRequest(
                f"JSON Value: {extreme} Type: Number is not of expected type: {spec.dtype}: out of range, "
                f"input {spec.name!r} takes {bounds.min} to {bounds.max}"
            )
    return array.astype(target)


def _check_leaves(value: object, dtype: str) -> None:
    if isinstance(value, list):
        for item in value:
            _check_leaves(item, dtype)
        return
    # Python's bool is a subclass of int.
    accepted = _ACCEPTED[TYPES[dtype].numpy.kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise BadRequest(
            f"JSON Value: {quote_value(value)} Type: {type_name(value)} is not of expected type: "
            f"{_NAMES.get(dtype, dtype)}"
        )


def type_name(value: object) -> str:
    """Return TensorFlow Serving's name for a JSON value's type."""
    if isinstance(value, bool):
        return str(value)
    names = {dict: "Object", str: "String", type(None): "Null", int: "Number", float: "Number"}
    return names.get(type(value), "Array")


def _explain_ragged(value: object) -> None:
    level: list[object] = [value]
    depth = 0
    # Empty lists have no next level.
    while level and all(isinstance(item, list) for item in level):
        sizes = [len(item) for item in level if isinstance(item, list)]
        odd = next((size for size in sizes if size != sizes[0]), None)
        if odd is not None:
            raise BadRequest(
                f"Encountered list at unexpected size: {odd} at level: {depth} expected size: {sizes[0]}"
            )
        level = [child for item in level if isinstance(item, list) for child in item]
        depth += 1
    if any(isinstance(item, list) for item in level):
        raise BadRequest(f"JSON Value: lists and single values are mixed at level: {depth}")


def is_finite(array: Array) -> bool:
    """Return whether an array has neither NaN nor infinities, which JSON lacks."""
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def dump(value: object) -> bytes:
    """Return `value`, whose leaves may be arrays or their rows, as JSON.

    Floats are written in the shortest form that reads back as the same float32; whole ones keep `.0`. NaN and
    infinities are null.
    """
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def dump_answer(key: str, value: object, outputs: Sequence[Array]) -> bytes:
    """Return `{key: value}` as JSON, with `"nonfinite": true` if an output has NaN or infinities."""
    body = dump({key: value})
    # NaN and infinities were written as null. A name may also contain the word.
    if b"null" in body and not all(map(is_finite, outputs)):
        return dump({key: value, "nonfinite": True})
    return body
