"""Parses and encodes TensorFlow Serving's predict bodies: rows (`instances`) or columns (`inputs`)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from jobs.contracts.signature import Signature, TensorSpec
from workers.serving.errors import BadRequest
from workers.serving.protocols.json_tensors import Body, dump, is_finite, needs_check, parse, to_array

Array = npt.NDArray[Any]
SIGNATURE_NAME = "serving_default"


class PredictCall(NamedTuple):
    """Input arrays in the signature's order, and whether the response is in row format."""

    arrays: list[Array]
    rows: bool


def parse_predict(body: Body, signature: Signature) -> PredictCall:
    """Parse a predict body.

    Raises:
        BadRequest: it does not fit the format or the signature.
    """
    request = parse(body)
    if not isinstance(request, dict):
        raise BadRequest("Request body must be a JSON object")
    name = request.get("signature_name", SIGNATURE_NAME)
    if not isinstance(name, str):
        raise BadRequest("'signature_name' key must be a string value.")
    if name not in ("", SIGNATURE_NAME):
        raise BadRequest(f'Serving signature name: "{name}" not found in signature def')
    if ("instances" in request) == ("inputs" in request):
        raise BadRequest(
            "Request body must have exactly one of 'instances' (row format) and 'inputs' (columnar)"
        )
    strings = len(request) + ("signature_name" in request)
    if "instances" in request:
        columns = _columns_of_rows(request["instances"], signature.inputs)
        if isinstance(request["instances"][0], dict):
            strings += len(request["instances"]) * len(columns)
    else:
        columns = _named_columns(request["inputs"], signature.inputs)
        if isinstance(request["inputs"], dict):
            strings += len(request["inputs"])
    strict = needs_check(body, strings)
    arrays = [to_array(columns[spec.name], spec, strict=strict) for spec in signature.inputs]
    lengths = {spec.name: len(array) for spec, array in zip(signature.inputs, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        raise BadRequest(f"inputs differ in their number of rows: {lengths}")
    if 0 in lengths.values():
        raise BadRequest("inputs have no rows")
    return PredictCall(arrays, rows="instances" in request)


def _columns_of_rows(instances: object, inputs: tuple[TensorSpec, ...]) -> dict[str, object]:
    if not isinstance(instances, list):
        raise BadRequest(f"Expecting 'instances' value to be an list/array, got: {type(instances).__name__}")
    if not instances:
        raise BadRequest("No values in 'instances' array.")
    named = isinstance(instances[0], dict)
    if not named:
        if len(inputs) > 1:
            raise BadRequest(
                f"instances is a plain list, but expecting list of objects with keys {_names(inputs)}"
            )
        if any(isinstance(row, dict) for row in instances):
            raise BadRequest("instances mix objects with plain values")
        return {inputs[0].name: instances}
    keys = {spec.name for spec in inputs}
    for number, row in enumerate(instances):
        if not isinstance(row, dict) or row.keys() != keys:
            raise BadRequest(f"instances[{number}] must be an object with exactly the keys {_names(inputs)}")
    return {name: [row[name] for row in instances] for name in keys}


def _named_columns(given: object, inputs: tuple[TensorSpec, ...]) -> dict[str, object]:
    if not isinstance(given, dict):
        if len(inputs) > 1:
            raise BadRequest(
                f"inputs is a plain value/list, but expecting an object with keys {_names(inputs)}"
            )
        return {inputs[0].name: given}
    # Unlike in row format, TensorFlow Serving ignores additional names here.
    for spec in inputs:
        if spec.name not in given:
            raise BadRequest(f"Missing named input: {spec.name} in 'inputs' object.")
    return given


def _names(inputs: tuple[TensorSpec, ...]) -> str:
    return ", ".join(repr(spec.name) for spec in inputs)


def encode_predict(outputs: Sequence[Array], signature: Signature, *, rows: bool) -> bytes:
    """Return the response body: `predictions` for rows, `outputs` for columns.

    NaN and infinities are null; the body then has `"nonfinite": true`.

    Args:
        outputs: arrays in the signature's order, batch dimension first.
        signature: names the outputs if there are several.
        rows: whether to answer in row format, as requested.
    """
    answer: object
    if len(outputs) == 1:
        answer = outputs[0]
    elif rows:
        names = [spec.name for spec in signature.outputs]
        answer = [dict(zip(names, row, strict=True)) for row in zip(*outputs, strict=True)]
    else:
        answer = {spec.name: array for spec, array in zip(signature.outputs, outputs, strict=True)}
    body: dict[str, object] = {"predictions" if rows else "outputs": answer}
    if not all(map(is_finite, outputs)):
        body["nonfinite"] = True
    return dump(body)
