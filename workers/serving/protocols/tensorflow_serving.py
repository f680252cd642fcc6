"""TensorFlow Serving's REST API: predict, classify, regress, status and metadata."""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

import numpy.typing as npt
import orjson

from jobs.spec.data.columns import ColumnType
from jobs.spec.signature import Signature, TensorSpec, Verb
from workers.features.pipeline import Pipeline
from workers.model_process.dtypes import TYPES
from workers.model_process.errors import BadRequest, NotFound
from workers.serving.protocols.catalog_view import CatalogView
from workers.serving.protocols.json_tensors import Body
from workers.serving.protocols.labelled import QUERY_FIELD, asks_for_labels, encode_labelled, refuse_labels
from workers.serving.protocols.protocol import (
    AnsweringVersion,
    Prediction,
    PredictionRoute,
    Protocol,
    Route,
    ViewRoute,
)
from workers.serving.protocols.target import Target
from workers.serving.protocols.tfs_examples import check_allowed, encode_results, parse_examples
from workers.serving.protocols.tfs_predict import SIGNATURE_NAME, PredictCall, encode_predict, parse_predict
from workers.serving.response import JSON, Response
from workers.serving.version_status import VersionStatus

Array = npt.NDArray[Any]

_SELECTOR = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_INFER = re.compile(rf"(?i)/v1/models/(?P<model>[^/:]+){_SELECTOR}:(?P<verb>predict|classify|regress)")
_READ = re.compile(rf"(?i)/v1/models(?:/(?P<model>[^/:]+){_SELECTOR}(?P<verb>/metadata)?)?")
# Versions are int64 in TensorFlow Serving.
_MAX_VERSION = 2**63 - 1
_DATATYPES: dict[ColumnType, str] = {"number": "DT_DOUBLE", "integer": "DT_INT64", "boolean": "DT_BOOL"}
"""Those of all other types are texts."""


class ExamplesCall(NamedTuple):
    """The input arrays in a classify or regress body, in the signature's order."""

    arrays: list[Array]

    def fields(self) -> dict[str, Any]:
        """Return everything but the arrays as JSON."""
        return {}

    @classmethod
    def restore(cls, arrays: list[Array], _: dict[str, Any]) -> Self:
        """Return the call with these arrays."""
        return cls(arrays)


def _parse_predict(body: Body, _: str | None, signature: Signature, pipeline: Pipeline | None) -> PredictCall:
    return parse_predict(body, signature, pipeline)


def _encode_predict(call: PredictCall, outputs: Sequence[Array], version: AnsweringVersion) -> Response:
    if call.labels_field:
        body = encode_labelled(outputs, version, key=call.key, field=call.labels_field)
    else:
        body = encode_predict(outputs, version.signature, rows=call.rows)
    return Response(body, headers=JSON)


def _parse_labelled(
    body: Body, _: str | None, signature: Signature, pipeline: Pipeline | None
) -> PredictCall:
    return parse_predict(body, signature, pipeline)._replace(labels_field=QUERY_FIELD)


def _parse_examples(
    body: Body, _: str | None, signature: Signature, pipeline: Pipeline | None
) -> ExamplesCall:
    return ExamplesCall(parse_examples(body, signature, pipeline))


def _encode_results(
    verb: Verb, _: ExamplesCall, outputs: Sequence[Array], version: AnsweringVersion
) -> Response:
    return Response(encode_results(verb, outputs, version.class_labels), headers=JSON)


def _examples_prediction(verb: Verb) -> Prediction[ExamplesCall]:
    return Prediction(
        name=verb,
        call=ExamplesCall,
        parse=_parse_examples,
        encode=partial(_encode_results, verb),
        check=partial(check_allowed, verb),
    )


PREDICT = Prediction(name="predict", call=PredictCall, parse=_parse_predict, encode=_encode_predict)
PREDICT_LABELS = Prediction(
    name="predict_labels",
    call=PredictCall,
    parse=_parse_labelled,
    encode=_encode_predict,
    counted_as=PREDICT.name,
)
"""Another operation than `PREDICT`, because the address asks for the names and the body may not."""
_PREDICTIONS: dict[str, Prediction[Any]] = {
    "predict": PREDICT,
    "classify": _examples_prediction("classify"),
    "regress": _examples_prediction("regress"),
}


class ModelRoute(NamedTuple):
    """The operation and the model."""

    verb: str
    target: Target


def model_route(method: str, path: str) -> ModelRoute:
    """Parse a path below /v1, not percent-decoded. Keywords are case-insensitive.

    Raises:
        BadRequest: the path is unknown, or has another method.
    """
    pattern = {"POST": _INFER, "GET": _READ}.get(method)
    match = pattern.fullmatch(path) if pattern else None
    if match is None:
        raise BadRequest(f"Malformed request: {method} {path}")
    if match["model"] is None:
        raise BadRequest("Missing model name in request.")
    digits = match["version"]
    # The length first: Python refuses to convert thousands of digits.
    if digits and (len(digits) > 19 or int(digits) > _MAX_VERSION):
        raise BadRequest(f"Failed to convert version: {digits[:40]} to numeric.")
    verb = (match["verb"] or "status").lower().removeprefix("/")
    label = unquote(match["label"]) if match["label"] else None
    # Decoded after the path is split: a %2F inside a name is no separator.
    target = Target(unquote(match["model"]), int(digits) if digits else None, label)
    return ModelRoute(verb, target)


def _owns(path: str) -> bool:
    # Its paths are case-insensitive.
    return path[:4].lower() == "/v1/"


def _route(method: str, path: str, query: str) -> Route:
    verb, target = model_route(method, path)
    if verb == "status":
        return ViewRoute(partial(_status, target), target, no_versions)
    if verb == "metadata":
        return ViewRoute(partial(_metadata, target), target)
    if verb != "predict":
        refuse_labels(query, f":{verb} has one form of answers")
    elif asks_for_labels(query):
        return PredictionRoute(PREDICT_LABELS, target)
    return PredictionRoute(_PREDICTIONS[verb], target)


def _status(target: Target, catalog: CatalogView, _: frozenset[str] | None) -> Response:
    return Response(encode_status(_statuses(target, catalog)))


def _statuses(target: Target, catalog: CatalogView) -> Sequence[VersionStatus]:
    """Return the states of a model's versions, or one version's.

    Raises:
        NotFound: there is none.
    """
    try:
        statuses = catalog.endpoint(target).statuses()
    except NotFound:
        statuses = []
    number = target.version
    # TensorFlow Serving ignores the label here and returns all versions.
    if target.label is not None and statuses:
        number = catalog.pick(target).version.approved.number
    if number is not None:
        statuses = [status for status in statuses if status.number == number]
    if not statuses:
        raise NotFound(no_versions(target._replace(version=number)))
    return statuses


def _metadata(target: Target, catalog: CatalogView, _: frozenset[str] | None) -> Response:
    version = catalog.pick(target).version
    approved = version.approved
    signature = version.signature_now()
    return Response(encode_metadata(target.model, approved.number, signature, approved.class_labels))


def encode_status(statuses: Iterable[VersionStatus]) -> bytes:
    """Return the status body, newest version first."""
    entries = []
    for status in sorted(statuses, key=lambda status: -status.number):
        # A version that is loaded again keeps the error of its last load.
        failed = status.state == "END" and status.error is not None
        code = {"error_code": "UNKNOWN" if failed else "OK", "error_message": status.error if failed else ""}
        entries.append({"version": str(status.number), "state": status.state, "status": code})
    return orjson.dumps({"model_version_status": entries})


def encode_metadata(
    model: str, version: int, signature: Signature, class_labels: Sequence[str] = ()
) -> bytes:
    """Return the metadata body. Sizes are strings; -1 means any size.

    TensorFlow Serving has no names of classes. They are in the order of the output.
    """
    definition = {
        "inputs": column_tensors(signature) or {spec.name: _tensor(spec) for spec in signature.inputs},
        "outputs": {spec.name: _tensor(spec) for spec in signature.outputs},
        "method_name": "tensorflow/serving/predict",
        "defaults": {},
    }
    return orjson.dumps(
        {
            "model_spec": {"name": model, "signature_name": "", "version": str(version)},
            "metadata": {"signature_def": {"signature_def": {SIGNATURE_NAME: definition}}},
            **({"class_labels": list(class_labels)} if class_labels else {}),
        }
    )


def _tensor(spec: TensorSpec) -> dict[str, object]:
    sizes = [-1 if size is None else size for size in (None, *spec.shape)]
    return {
        "dtype": TYPES[spec.dtype].tensorflow,
        "tensor_shape": {"dim": [{"size": str(size), "name": ""} for size in sizes], "unknown_rank": False},
        "name": f"{spec.name}:0",
    }


def column_tensors(signature: Signature) -> dict[str, dict[str, object]]:
    """Return the columns as tensors for the metadata."""
    sizes = (-1,) if signature.window is None else (-1, signature.window.rows)
    shape = {"dim": [{"size": str(size), "name": ""} for size in sizes], "unknown_rank": False}
    return {
        column.name: {
            "dtype": _DATATYPES.get(column.type, "DT_STRING"),
            "tensor_shape": shape,
            "name": f"{column.name}:0",
        }
        for column in signature.columns
    }


def no_versions(target: Target) -> str:
    """Return TensorFlow Serving's message for asking the status of a missing model or version."""
    missing = "any versions" if target.version is None else f"version {target.version}"
    return f"Could not find {missing} of model {target.model}"


TENSORFLOW_SERVING = Protocol(owns=_owns, route=_route, predictions=(*_PREDICTIONS.values(), PREDICT_LABELS))
