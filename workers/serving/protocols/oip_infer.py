"""Parses and encodes Open Inference Protocol v2 infer bodies, with Triton's binary tensor extension.

A binary request has `Inference-Header-Content-Length: N`: N bytes of JSON, then the raw little-endian bytes
of each input whose parameters contain `binary_data_size`, in order. Outputs are returned the same way if
requested.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from jobs.spec.signature import Signature, TensorSpec
from workers.features.pipeline import Pipeline
from workers.model_process.dtypes import TYPES, computed_dtype
from workers.model_process.errors import BadRequest
from workers.serving.protocols.json_tensors import (
    Body,
    check_shape,
    dump,
    in_range,
    is_finite,
    needs_check,
    parse,
    to_array,
)
from workers.serving.protocols.long_numbers import with_exact_numbers
from workers.serving.protocols.oip_columns import read_tensors
from workers.serving.protocols.oip_outputs import (
    RequestedOutput,
    is_object_list,
    requested_outputs,
    spec_named,
)
from workers.serving.protocols.oip_tensors import (
    HEADER_LENGTH,
    SHORT_FLOATS,
    Tensor,
    item_bytes,
    numbers_of,
    shape_of,
    take_raw,
)
from workers.serving.protocols.table_rows import check_keys, names_of_input

Array = npt.NDArray[Any]

# The answer repeats it.
_MAX_ID = 1000


class InferCall(NamedTuple):
    """Input arrays in the signature's order, and the requested outputs."""

    arrays: list[Array]
    outputs: list[RequestedOutput]
    id: str | None

    def fields(self) -> dict[str, Any]:
        """Return everything but the arrays as JSON."""
        return {"outputs": [list(output) for output in self.outputs], "id": self.id}

    @classmethod
    def restore(cls, arrays: list[Array], fields: dict[str, Any]) -> Self:
        """Return the call with these arrays and `fields`."""
        return cls(arrays, [RequestedOutput(*output) for output in fields["outputs"]], fields["id"])


def parse_infer(
    body: Body, header_length: str | None, signature: Signature, pipeline: Pipeline | None = None
) -> InferCall:
    """Parse an infer request's body.

    Args:
        body: the whole request body.
        header_length: `Inference-Header-Content-Length`, if it was sent.
        signature: the answering version's signature.
        pipeline: this version's, if it takes table columns.

    Raises:
        BadRequest: it does not fit the protocol or the signature.
        BodyTooLarge: its rows become too many numbers.
    """
    head, raw = _split(body, header_length)
    request = with_exact_numbers(_parse_head(head, header_length), head, pipeline)
    try:
        strings = _count_strings(request)
    except RecursionError:
        raise BadRequest("the request is nested too deeply") from None
    if not isinstance(request, dict) or not is_object_list(request.get("inputs")):
        raise BadRequest("the request needs 'inputs': a list of tensors with name, shape and datatype")
    tensors = request["inputs"]
    if pipeline is not None:
        check_keys(head, request)
        arrays = [read_tensors(tensors, raw, pipeline, names_of_input(signature, pipeline))]
    else:
        arrays = _read_inputs(tensors, signature, raw, strict=needs_check(head, strings))
    call_id = request.get("id")
    if call_id is not None and not (isinstance(call_id, str) and len(call_id) <= _MAX_ID):
        raise BadRequest(f"'id' must be a string of at most {_MAX_ID} characters")
    return InferCall(arrays, requested_outputs(request, signature), call_id)


def _read_inputs(
    tensors: list[dict[str, Any]], signature: Signature, raw: memoryview, *, strict: bool
) -> list[Array]:
    """Return a request's input arrays, in the signature's order."""
    inputs: dict[str, Array] = {}
    for tensor in tensors:
        spec = spec_named(tensor.get("name"), signature.inputs, "input")
        if spec.name in inputs:
            raise BadRequest(f"input {spec.name!r} is given twice")
        inputs[spec.name], raw = _read(tensor, spec, raw, strict=strict)
    if raw:
        raise BadRequest(f"{len(raw)} bytes follow the last binary tensor")
    if missing := [spec.name for spec in signature.inputs if spec.name not in inputs]:
        raise BadRequest(f"inputs {missing} are missing")
    arrays = [inputs[spec.name] for spec in signature.inputs]
    if len({len(array) for array in arrays}) > 1 or len(arrays[0]) == 0:
        raise BadRequest("all inputs need the same first dimension, of at least 1")
    return arrays


def _split(body: Body, header_length: str | None) -> tuple[Body, memoryview]:
    if header_length is None:
        return body, memoryview(b"")
    # The length first: Python refuses to convert thousands of digits.
    if not (header_length.isdecimal() and len(header_length) < 20) or int(header_length) > len(body):
        raise BadRequest(f"{HEADER_LENGTH} {header_length[:40]!r} does not fit {len(body)} bytes of body")
    return body[: int(header_length)], memoryview(body)[int(header_length) :]


def _parse_head(head: Body, header_length: str | None) -> Any:
    """Return the value in the JSON of a request.

    Raises:
        BadRequest: it is no JSON; the message names the header if its value, or its absence, is the cause.
    """
    try:
        return parse(head)
    except BadRequest as error:
        if header_length is not None:
            raise BadRequest(
                f"the first {header_length} bytes of the body, by {HEADER_LENGTH}, are not its JSON: {error}"
            ) from None
        if b"binary_data_size" in head:
            raise BadRequest(
                f"the body has more than JSON. If raw tensors follow, send the header {HEADER_LENGTH} with "
                f"the length of the JSON in bytes: {error}"
            ) from None
        raise


def _count_strings(value: object) -> int:
    """Return how many strings and keys a request has outside its tensors' data."""
    if isinstance(value, dict):
        return sum(1 + (0 if key == "data" else _count_strings(item)) for key, item in value.items())
    if isinstance(value, list):
        return sum(_count_strings(item) for item in value)
    return isinstance(value, str)


def _read(tensor: Tensor, spec: TensorSpec, raw: memoryview, *, strict: bool) -> tuple[Array, memoryview]:
    shape, datatype = shape_of(tensor, spec.name), tensor.get("datatype")
    accepted = {TYPES[name].inference for name in (spec.dtype, computed_dtype(spec.dtype))}
    if TYPES[spec.dtype].numpy.kind == "f":
        accepted |= {*SHORT_FLOATS}
    if not isinstance(datatype, str) or datatype not in accepted:
        raise BadRequest(
            f"input {spec.name!r}: datatype is {datatype!r}; the model takes {TYPES[spec.dtype].inference}"
        )
    check_shape(shape, spec, any_size="-1")
    own, rest = take_raw(tensor, spec.name, raw)
    if own is None:
        return _from_json(tensor.get("data"), shape, spec, strict=strict), rest
    if len(own) != math.prod(shape) * item_bytes(datatype):
        raise BadRequest(f"input {spec.name!r}: binary_data_size {len(own)} does not fit shape {shape}")
    return _computed(numbers_of(own, datatype, spec.name).reshape(shape), spec), rest


def _computed(array: Array, spec: TensorSpec) -> Array:
    """Return raw values in the dtype that the tensor is computed in."""
    target = TYPES[computed_dtype(spec.dtype)].numpy
    if array.dtype == target or array.size == 0:
        return array.astype(target, copy=False)
    if target.kind in "iu":
        return in_range(array, spec)
    with np.errstate(over="ignore"):
        return array.astype(target)


def _from_json(data: object, shape: list[int], spec: TensorSpec, *, strict: bool) -> Array:
    if not isinstance(data, list):
        raise BadRequest(f"input {spec.name!r}: data must be a list, flat or nested")
    if data and isinstance(data[0], list):
        array = to_array(data, spec, strict=strict)
        if list(array.shape) != shape:
            raise BadRequest(
                f"input {spec.name!r}: lists of shape {list(array.shape)} do not fit shape {shape}"
            )
    else:
        # A flat list in row-major order, converted as a batch of single values.
        array = to_array(data, spec.model_copy(update={"shape": ()}), strict=strict)
    if array.size != math.prod(shape):
        raise BadRequest(f"input {spec.name!r}: {array.size} values do not fit shape {shape}")
    return array.reshape(shape)


class Encoded(NamedTuple):
    """A body, and its JSON part's length if raw tensors follow."""

    body: bytes | memoryview
    header_length: int | None


def encode_infer(
    call: InferCall, outputs: Sequence[Array], model: str, version: int, signature: Signature
) -> Encoded:
    """Return the response: the requested outputs, each as flat JSON or as raw bytes.

    In JSON, NaN and infinities are null; the output then has the parameter `"nonfinite": true`.
    """
    tensors: list[dict[str, object]] = []
    raw: list[memoryview] = []
    for position, binary in call.outputs:
        spec, array = signature.outputs[position], outputs[position]
        tensor: dict[str, object] = {
            "name": spec.name,
            "datatype": TYPES[spec.dtype].inference,
            "shape": list(array.shape),
        }
        if binary:
            raw.append(_raw(array.astype(TYPES[spec.dtype].numpy.newbyteorder("<"), copy=False)))
            tensor["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            # orjson reads only contiguous arrays.
            tensor["data"] = np.ascontiguousarray(array).reshape(-1)
            if not is_finite(array):
                tensor["parameters"] = {"nonfinite": True}
        tensors.append(tensor)
    answer: dict[str, object] = {"model_name": model, "model_version": str(version), "outputs": tensors}
    if call.id is not None:
        answer["id"] = call.id
    head = dump(answer)
    return Encoded(b"".join([head, *raw]), len(head) if raw else None)


def _raw(array: Array) -> memoryview:
    """Return an array's bytes; a contiguous one is not copied."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
