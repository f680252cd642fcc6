"""The REST API of TensorFlow Serving: predict, classify, regress, status and metadata."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy.typing as npt

from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.model_process.errors import NotFound
from workers.serving.protocols import tfs_paths, tfs_views
from workers.serving.protocols.catalog_view import CatalogView
from workers.serving.protocols.json_tensors import Body
from workers.serving.protocols.protocol import (
    AnsweringVersion,
    Prediction,
    PredictionRoute,
    Protocol,
    Route,
    ViewRoute,
)
from workers.serving.protocols.target import Target
from workers.serving.protocols.tfs_examples import Verb, check_allowed, encode_results, parse_examples
from workers.serving.protocols.tfs_predict import PredictCall, encode_predict, parse_predict
from workers.serving.response import JSON, Response
from workers.serving.version_status import VersionStatus

Array = npt.NDArray[Any]


class ExamplesCall(NamedTuple):
    """The input arrays of a classify or regress body, in the signature's order."""

    arrays: list[Array]

    def fields(self) -> dict[str, Any]:
        """Return everything but the arrays as JSON."""
        return {}

    @classmethod
    def restore(cls, arrays: list[Array], _: dict[str, Any]) -> Self:
        """Return the call of these arrays."""
        return cls(arrays)


def _parse_predict(body: Body, _: str | None, signature: Signature, pipeline: Pipeline | None) -> PredictCall:
    return parse_predict(body, signature, pipeline)


def _encode_predict(call: PredictCall, outputs: Sequence[Array], version: AnsweringVersion) -> Response:
    return Response(encode_predict(outputs, version.signature, rows=call.rows), headers=JSON)


def _parse_examples(body: Body, _: str | None, signature: Signature, __: Pipeline | None) -> ExamplesCall:
    return ExamplesCall(parse_examples(body, signature))


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
        reads_columns=False,
    )


PREDICT = Prediction(name="predict", call=PredictCall, parse=_parse_predict, encode=_encode_predict)
CLASSIFY, REGRESS = _examples_prediction("classify"), _examples_prediction("regress")
_PREDICTIONS: dict[tfs_paths.Verb, Prediction[Any]] = {
    "predict": PREDICT,
    "classify": CLASSIFY,
    "regress": REGRESS,
}


def _owns(path: str) -> bool:
    # Its paths are case-insensitive.
    return path[:4].lower() == "/v1/"


def _route(method: str, path: str) -> Route:
    verb, target = tfs_paths.route(method, path)
    if verb == "status":
        return ViewRoute(partial(_status, target), target, no_versions)
    if verb == "metadata":
        return ViewRoute(partial(_metadata, target), target)
    return PredictionRoute(_PREDICTIONS[verb], target)


def _status(target: Target, catalog: CatalogView, _: frozenset[str] | None) -> Response:
    return Response(tfs_views.encode_status(_statuses(target, catalog)))


def _statuses(target: Target, catalog: CatalogView) -> Sequence[VersionStatus]:
    """Return the states of all versions of a model, or of one.

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
    return Response(tfs_views.encode_metadata(target.model, version.approved.number, version.signature_now()))


def no_versions(target: Target) -> str:
    """Return TensorFlow Serving's message for the status of a model or version that does not exist."""
    missing = "any versions" if target.version is None else f"version {target.version}"
    return f"Could not find {missing} of model {target.model}"


TENSORFLOW_SERVING = Protocol(owns=_owns, route=_route, predictions=tuple(_PREDICTIONS.values()))
