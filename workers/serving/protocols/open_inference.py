"""The Open Inference Protocol v2 over REST: infer, health, metadata and the model index."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy.typing as npt
import orjson

from jobs.spec.signature import Signature, TensorSpec
from workers.model_process.dtypes import TYPES
from workers.model_process.errors import Forbidden, NotFound, Unavailable
from workers.serving.protocols.catalog_view import CatalogView
from workers.serving.protocols.labelled import refuse_labels
from workers.serving.protocols.oip_columns import column_tensors
from workers.serving.protocols.oip_infer import InferCall, encode_infer, parse_infer
from workers.serving.protocols.oip_tensors import HEADER_LENGTH
from workers.serving.protocols.protocol import (
    AnsweringVersion,
    Prediction,
    PredictionRoute,
    Protocol,
    Route,
    ViewRoute,
)
from workers.serving.protocols.target import Target
from workers.serving.response import BINARY, JSON, Response, json_response

Array = npt.NDArray[Any]

_HEADER_LENGTH = HEADER_LENGTH.lower().encode()
_MAX_DIGITS = 9
_SERVER = {"name": "trainyard", "version": "1", "extensions": ["binary_tensor_data", "model_repository"]}
_MODEL = re.compile(
    r"/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>\d{1,18}))?(?:/(?P<verb>ready|infer))?"
)


class ModelRoute(NamedTuple):
    """The operation (`""` is model metadata) and the model."""

    verb: str
    target: Target


def model_route(path: str) -> ModelRoute | None:
    """Parse a path below /v2/models; None if it is unknown."""
    match = _MODEL.fullmatch(path)
    if match is None:
        return None
    version = int(match["version"]) if match["version"] else None
    return ModelRoute(match["verb"] or "", Target(unquote(match["model"]), version))


def _encode_infer(call: InferCall, outputs: Sequence[Array], version: AnsweringVersion) -> Response:
    body, header_length = encode_infer(call, outputs, version.model, version.number, version.signature)
    if header_length is None:
        return Response(body, headers=JSON)
    return Response(body, headers=[*BINARY, (_HEADER_LENGTH, str(header_length).encode())])


def _json_bytes(header_length: str) -> int | None:
    is_valid = header_length.isdecimal() and len(header_length) <= _MAX_DIGITS
    return int(header_length) if is_valid else None


def _json_outputs(call: InferCall, outputs: Sequence[Array]) -> Sequence[Array]:
    return [outputs[position] for position, binary in call.outputs if not binary]


INFER = Prediction(
    name="infer",
    call=InferCall,
    parse=parse_infer,
    encode=_encode_infer,
    header=_HEADER_LENGTH,
    json_bytes=_json_bytes,
    json_outputs=_json_outputs,
)


def _owns(path: str) -> bool:
    return path == "/v2" or path.startswith("/v2/")


def _route(method: str, path: str, query: str) -> Route:
    match method, path:
        case "GET", "/v2":
            return ViewRoute(_server)
        case "GET", "/v2/health/live":
            return ViewRoute(_live)
        case "GET", "/v2/health/ready":
            return ViewRoute(_ready)
        case "POST", "/v2/repository/index":
            return ViewRoute(_index)
        case "POST", _ if path.startswith("/v2/repository/"):
            raise Forbidden("The dashboard decides what to load")
    route = model_route(path)
    if route is None or (method == "POST") != (route.verb == "infer"):
        raise NotFound(f"Not found: {method} {path}")
    if route.verb == "infer":
        refuse_labels(query, "The Open Inference Protocol has no answer by class")
        return PredictionRoute(INFER, route.target)
    view = _model_ready if route.verb == "ready" else _model_metadata
    return ViewRoute(partial(view, route.target), route.target)


def _server(_: CatalogView, __: frozenset[str] | None) -> Response:
    return json_response(_SERVER)


def _live(_: CatalogView, __: frozenset[str] | None) -> Response:
    return json_response({"live": True})


def _ready(catalog: CatalogView, _: frozenset[str] | None) -> Response:
    return json_response({"ready": True, **catalog.check_ready()})


def _index(catalog: CatalogView, reached: frozenset[str] | None) -> Response:
    entries = [
        {"name": model, "version": str(status.number), "state": status.state, "reason": status.error or ""}
        for model, endpoint in catalog.endpoints.items()
        if reached is None or model in reached
        for status in endpoint.statuses()
    ]
    return json_response(entries)


def _model_ready(target: Target, catalog: CatalogView, _: frozenset[str] | None) -> Response:
    if catalog.pick(target).version.state != "AVAILABLE":
        raise Unavailable(f"Model {target.model} is not ready", retry_after=1)
    return json_response({"name": target.model, "ready": True})


def _model_metadata(target: Target, catalog: CatalogView, _: frozenset[str] | None) -> Response:
    version = catalog.pick(target).version
    numbers = [version.approved.number for version in catalog.endpoint(target).available()]
    labels = version.approved.class_labels
    return Response(encode_metadata(target.model, numbers, version.signature_now(), labels))


def encode_metadata(
    model: str, versions: list[int], signature: Signature, class_labels: Sequence[str] = ()
) -> bytes:
    """Return the model metadata; -1 means any size. The classes are in the order of the output."""
    return orjson.dumps(
        {
            "name": model,
            "versions": [str(number) for number in sorted(versions)],
            "platform": "keras_jax",
            "inputs": column_tensors(signature) or [_metadata(spec) for spec in signature.inputs],
            "outputs": [_metadata(spec) for spec in signature.outputs],
            **({"class_labels": list(class_labels)} if class_labels else {}),
        }
    )


def _metadata(spec: TensorSpec) -> dict[str, object]:
    return {"name": spec.name, "datatype": TYPES[spec.dtype].inference, "shape": _shape(spec)}


def _shape(spec: TensorSpec) -> list[int]:
    return [-1, *(-1 if size is None else size for size in spec.shape)]


OPEN_INFERENCE = Protocol(
    owns=_owns,
    route=_route,
    predictions=(INFER,),
    open_paths=frozenset({"/v2/health/live", "/v2/health/ready"}),
)
