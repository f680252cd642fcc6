"""Defines a protocol for the prediction server: its routes, its operations and how it writes errors.

`table.PROTOCOLS` lists them all. The application, the direct path and the body workers read everything
about a protocol from its `Protocol`, so another one costs a module beside this one and an entry there.
"""

import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy.typing as npt

from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.serving.protocols.catalog_view import CatalogView
from workers.serving.protocols.json_tensors import Body
from workers.serving.protocols.target import Target, not_found
from workers.serving.response import Response, json_error

Array = npt.NDArray[Any]


class Call(typing.Protocol):
    """A prediction request's parsed body."""

    @property
    def arrays(self) -> list[Array]:
        """The model's inputs, in the signature's order."""

    def fields(self) -> dict[str, Any]:
        """Return everything but the arrays as JSON, for another process."""

    @classmethod
    def restore(cls, arrays: list[Array], fields: dict[str, Any]) -> Self:
        """Return the call with these arrays and `fields`."""


class AnsweringVersion(NamedTuple):
    """The version whose outputs are encoded.

    Attributes:
        model: the model's name.
        number: the version number.
        signature: its inputs and outputs.
        class_labels: the names of its classes; empty for other models.
        multilabel: whether several of its classes may apply to one row.
    """

    model: str
    number: int
    signature: Signature
    class_labels: tuple[str, ...]
    multilabel: bool = False


@dataclass(frozen=True, slots=True)
class Prediction[C: Call]:
    """An operation that sends the inputs in a request through a model.

    Attributes:
        name: unique among all protocols.
        call: the class for parsed bodies.
        parse: returns the call in a body, for the value of `header`, the signature of the version that
            answers, and this version's pipeline if it takes table columns. Raises a
            `ServingError` if the body does not fit.
        encode: returns the response for the call, the outputs in the signature's order and the version.
        header: the request header that `parse` needs, in lower case; None if it needs none.
        json_bytes: returns how many bytes of a body are JSON, from the value of `header`, or None if it is
            invalid. The rest is raw tensors, which take no time to parse. None: bodies have no raw tensors.
        json_outputs: returns the outputs that `encode` writes as JSON, which takes long. None: all of them.
        check: raises BadRequest if versions with this signature and these class labels cannot answer. None:
            every version can.
        counted_as: the label `API` in its metrics; None for its name.
    """

    name: str
    call: type[C]
    parse: Callable[[Body, str | None, Signature, Pipeline | None], C]
    encode: Callable[[C, Sequence[Array], AnsweringVersion], Response]
    header: bytes | None = None
    json_bytes: Callable[[str], int | None] | None = None
    json_outputs: Callable[[C, Sequence[Array]], Sequence[Array]] | None = None
    check: Callable[[Signature, Sequence[str]], None] | None = None
    counted_as: str | None = None

    @property
    def is_direct(self) -> bool:
        """Whether the direct path may answer, which does not check versions."""
        return self.check is None

    @property
    def api(self) -> str:
        """Return its label in the metrics."""
        return self.counted_as or self.name


class PredictionRoute(NamedTuple):
    """A request for a prediction."""

    prediction: Prediction[Any]
    target: Target


class ViewRoute(NamedTuple):
    """A request for information about the server or a model.

    Attributes:
        respond: returns the response from the catalog and the models that the caller may ask; None for all.
            Raises a `ServingError` if there is none.
        target: the model that the caller must be allowed to ask; None if it needs no model.
        unknown: returns the message if the caller may not ask this model.
    """

    respond: Callable[[CatalogView, frozenset[str] | None], Response]
    target: Target | None = None
    unknown: Callable[[Target], str] = not_found


Route = PredictionRoute | ViewRoute


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol.

    Attributes:
        owns: returns whether a path belongs to it.
        route: parses a method, a path that it owns and the query behind it, none of them percent-decoded.
            Raises a `ServingError` if they are unknown.
        predictions: its operations that `route` may return.
        encode_error: returns the response for a message and an error status.
        open_paths: paths that need no token: a load balancer has none.
    """

    owns: Callable[[str], bool]
    route: Callable[[str, str, str], Route]
    predictions: tuple[Prediction[Any], ...]
    encode_error: Callable[[str, int], Response] = json_error
    open_paths: frozenset[str] = frozenset()


def protocol_of(path: str, protocols: Iterable[Protocol]) -> Protocol | None:
    """Return the protocol that a path belongs to; None if it belongs to none."""
    for protocol in protocols:
        if protocol.owns(path):
            return protocol
    return None


def predictions_by_name(protocols: Iterable[Protocol]) -> dict[str, Prediction[Any]]:
    """Return all operations by their names.

    Raises:
        ValueError: two operations have the same name.
    """
    by_name: dict[str, Prediction[Any]] = {}
    for protocol in protocols:
        for prediction in protocol.predictions:
            if prediction.name in by_name:
                raise ValueError(f"two operations have the name {prediction.name!r}; rename one of them")
            by_name[prediction.name] = prediction
    return by_name
