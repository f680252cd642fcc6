"""Reads which outputs an Open Inference Protocol request asks for, and in which form."""

from typing import Any, NamedTuple

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.errors import BadRequest
from workers.serving.protocols.json_tensors import quote_value
from workers.serving.protocols.oip_tensors import parameters_of


class RequestedOutput(NamedTuple):
    """One output, by its position in the signature, and whether to send it as raw bytes."""

    position: int
    binary: bool


def requested_outputs(request: dict[str, Any], signature: Signature) -> list[RequestedOutput]:
    """Return the outputs that a request asks for; all if it names none.

    Raises:
        BadRequest: there is no such output, or it has a parameter that is not supported.
    """
    default = _switch(parameters_of(request), "binary_data_output", default=False)
    outputs = request.get("outputs")
    if not outputs:
        return [RequestedOutput(position, default) for position in range(len(signature.outputs))]
    if not is_object_list(outputs):
        raise BadRequest("'outputs' must be a list of objects with a name")
    requested: list[RequestedOutput] = []
    for output in outputs:
        spec = spec_named(output.get("name"), signature.outputs, "output")
        position = signature.outputs.index(spec)
        if any(position == earlier.position for earlier in requested):
            raise BadRequest(f"output {spec.name!r} is requested twice")
        parameters = parameters_of(output)
        if "classification" in parameters:
            raise BadRequest("the parameter 'classification' is not supported; send the request without it")
        binary = _switch(parameters, "binary_data", default=default)
        requested.append(RequestedOutput(position, binary))
    return requested


def _switch(parameters: dict[str, Any], key: str, *, default: bool) -> bool:
    value = parameters.get(key, default)
    if not isinstance(value, bool):
        raise BadRequest(f"the parameter {key!r} must be true or false, not {quote_value(value)}")
    return value


def spec_named(name: object, specs: tuple[TensorSpec, ...], what: str) -> TensorSpec:
    """Return the tensor with a name.

    Raises:
        BadRequest: there is none.
    """
    for spec in specs:
        if spec.name == name:
            return spec
    raise BadRequest(f"unexpected {what} {name!r}; the model has {[spec.name for spec in specs]}")


def is_object_list(value: object) -> bool:
    """Return whether a value is a list of objects, at least one."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
