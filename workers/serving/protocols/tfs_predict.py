"""Parses and encodes TensorFlow Serving's predict bodies: rows (`instances`) or columns (`inputs`)."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy.typing as npt

from jobs.spec.signature import Signature, TensorSpec
from workers.features.pipeline import Pipeline
from workers.model_process.errors import BadRequest
from workers.serving.protocols.json_tensors import (
    Body,
    dump_answer,
    needs_check,
    parse,
    quote_value,
    to_array,
)
from workers.serving.protocols.labelled import BODY_FIELD, asks_for_labels_in_body
from workers.serving.protocols.long_numbers import with_exact_numbers
from workers.serving.protocols.plain_numbers import parse_plain_numbers
from workers.serving.protocols.plain_rows import parse_plain_rows
from workers.serving.protocols.table_rows import names_of_input, read_predict

Array = npt.NDArray[Any]
SIGNATURE_NAME = "serving_default"


class PredictCall(NamedTuple):
    """A parsed predict body.

    Attributes:
        arrays: the inputs in the signature's order.
        rows: whether the response is in row format.
        labels_field: the field that asks for the names of the classes in the response; empty if none does.
    """

    arrays: list[Array]
    rows: bool
    labels_field: str = ""

    @property
    def key(self) -> str:
        """Return the key of the predictions in the response."""
        return "predictions" if self.rows else "outputs"

    def fields(self) -> dict[str, Any]:
        """Return everything but the arrays as JSON."""
        return {"rows": self.rows, "labels_field": self.labels_field}

    @classmethod
    def restore(cls, arrays: list[Array], fields: dict[str, Any]) -> Self:
        """Return the call with these arrays and `fields`."""
        return cls(arrays, fields["rows"], fields["labels_field"])


def parse_predict(body: Body, signature: Signature, pipeline: Pipeline | None = None) -> PredictCall:
    """Parse a predict body.

    Args:
        body: the JSON.
        signature: the answering version's.
        pipeline: this version's, if it takes table columns.

    Raises:
        BadRequest: it does not fit the format or the signature.
        BodyTooLarge: its rows become too many numbers.
    """
    if pipeline is not None:
        plain = parse_plain_rows(body, pipeline)
    else:
        plain = parse_plain_numbers(body, signature.inputs[0]) if len(signature.inputs) == 1 else None
    if plain is not None:
        return PredictCall([plain.array], rows=plain.key == "instances")
    request = with_exact_numbers(parse_object(body), body, pipeline)
    check_signature_name(request, 'Serving signature name: "{}" not found in signature def')
    _check_keys(request)
    if pipeline is not None:
        arrays = [read_predict(body, request, pipeline, names_of_input(signature, pipeline))]
    else:
        arrays = _read_tensors(body, request, signature.inputs)
    field = BODY_FIELD if asks_for_labels_in_body(request) else ""
    return PredictCall(arrays, rows="instances" in request, labels_field=field)


def _check_keys(request: dict[str, Any]) -> None:
    """Check that the rows are given in one of two ways."""
    if "instances" in request and "inputs" in request:
        raise BadRequest(
            f"JSON Value: {quote_value(request)} Not formatted correctly expecting only one of 'inputs' or "
            "'instances' keys to exist"
        )
    if "instances" not in request and "inputs" not in request:
        raise BadRequest("Missing 'inputs' or 'instances' key")


def _read_tensors(body: Body, request: dict[str, Any], inputs: tuple[TensorSpec, ...]) -> list[Array]:
    """Return an array for each input. All have the same number of rows."""
    strings = len(request) + ("signature_name" in request) + (BODY_FIELD in request)
    if "instances" in request:
        columns = _columns_of_rows(request, inputs)
        if isinstance(request["instances"][0], dict):
            strings += len(request["instances"]) * len(columns)
    else:
        columns = _named_columns(request["inputs"], inputs)
        if isinstance(request["inputs"], dict):
            strings += len(request["inputs"])
    strict = needs_check(body, strings)
    arrays = [to_array(columns[spec.name], spec, strict=strict) for spec in inputs]
    lengths = {spec.name: len(array) for spec, array in zip(inputs, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        raise BadRequest(f"inputs differ in their number of rows: {lengths}")
    if 0 in lengths.values():
        raise BadRequest("inputs have no rows")
    return arrays


def parse_object(body: Body) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises:
        BadRequest: it is something else.
    """
    request = parse(body)
    if not isinstance(request, dict):
        raise BadRequest(f"JSON Value: {quote_value(request)} Is not object")
    return request


def check_signature_name(request: dict[str, Any], unknown: str) -> None:
    """Check that a request names the only signature, or none.

    Args:
        request: the JSON object.
        unknown: the message for another name, with a place for it.

    Raises:
        BadRequest: it names another one.
    """
    name = request.get("signature_name", SIGNATURE_NAME)
    if not isinstance(name, str):
        raise BadRequest(
            f"JSON Value: {quote_value(request)} not formatted correctly. 'signature_name' key must be a "
            "string value."
        )
    if name not in ("", SIGNATURE_NAME):
        raise BadRequest(unknown.format(name))


def _columns_of_rows(request: dict[str, Any], inputs: tuple[TensorSpec, ...]) -> dict[str, object]:
    instances = request["instances"]
    if not isinstance(instances, list):
        raise BadRequest(f"JSON Value: {quote_value(request)} Expecting 'instances' to be an list/array")
    if not instances:
        raise BadRequest(f"JSON Value: {quote_value(request)} No values in 'instances' array")
    if not isinstance(instances[0], dict):
        if len(inputs) > 1:
            raise BadRequest(
                "instances is a plain list, but expecting list of objects as multiple input tensors required "
                f"as per tensorinfo_map: {_names(inputs)}"
            )
        for number, row in enumerate(instances):
            if isinstance(row, dict):
                raise BadRequest(f"Expecting value/list but got object at item {number} of input list")
        return {inputs[0].name: instances}
    keys = {spec.name for spec in inputs}
    for number, row in enumerate(instances):
        if not isinstance(row, dict):
            raise BadRequest(f"Expecting object but got list at item {number} of input list")
        if row.keys() != keys:
            raise BadRequest(
                f"Failed to process element: {number} of 'instances' list. JSON object: {quote_value(row)} "
                f"keys must be equal to: {_names(inputs)}"
            )
    return {name: [row[name] for row in instances] for name in keys}


def _named_columns(columns: object, inputs: tuple[TensorSpec, ...]) -> dict[str, object]:
    if not isinstance(columns, dict):
        if len(inputs) > 1:
            raise BadRequest(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as "
                f"per tensorinfo_map: {_names(inputs)}"
            )
        return {inputs[0].name: columns}
    # Unlike in row format, TensorFlow Serving ignores additional names here.
    for spec in inputs:
        if spec.name not in columns:
            raise BadRequest(f"Missing named input: {spec.name} in 'inputs' object.")
    return columns


def _names(inputs: tuple[TensorSpec, ...]) -> str:
    return ",".join(sorted(spec.name for spec in inputs))


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
    return dump_answer("predictions" if rows else "outputs", answer, outputs)
