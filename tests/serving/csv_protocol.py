"""A protocol that only tests serve: number lines, `POST /csv/<model>`."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from jobs.spec.signature import Signature
from workers.features.pipeline import Pipeline
from workers.model_process.errors import BadRequest, NotFound
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
from workers.serving.response import Headers, Response

Array = npt.NDArray[Any]
TEXT: Headers = [(b"content-type", b"text/csv")]


class CsvCall(NamedTuple):
    """The numbers, and how many decimals the answer has."""

    arrays: list[Array]
    decimals: int

    def fields(self) -> dict[str, Any]:
        return {"decimals": self.decimals}

    @classmethod
    def restore(cls, arrays: list[Array], fields: dict[str, Any]) -> Self:
        return cls(arrays, fields["decimals"])


def parse(body: Body, decimals: str | None, signature: Signature, _: Pipeline | None) -> CsvCall:
    try:
        rows = [[float(value) for value in line.split(b",")] for line in body.splitlines()]
    except ValueError as error:
        raise BadRequest(str(error)) from None
    width = signature.inputs[0].shape[0]
    if not rows or any(len(row) != width for row in rows):
        raise BadRequest(f"each line needs {width} numbers")
    return CsvCall([np.array(rows, np.float32)], int(decimals or 1))


def encode(call: CsvCall, outputs: Sequence[Array], version: AnsweringVersion) -> Response:
    lines = [",".join(f"{value:.{call.decimals}f}" for value in row) for row in outputs[0]]
    text = "\n".join([f"{version.model} {version.number}", *lines])
    return Response(text.encode(), headers=[*TEXT, (b"x-lines", str(len(lines)).encode())])


def encode_error(message: str, status: int) -> Response:
    return Response(f"failed: {message}".encode(), status, [*TEXT])


def route(method: str, path: str, _: str) -> Route:
    if (method, path) == ("GET", "/csv/models"):
        return ViewRoute(list_models)
    if method == "POST" and (match := re.fullmatch(r"/csv/(\w+)", path)):
        return PredictionRoute(SCORE, Target(match[1]))
    raise NotFound("unknown path")


def list_models(catalog: CatalogView, reached: frozenset[str] | None) -> Response:
    names = (name for name in catalog.endpoints if reached is None or name in reached)
    return Response(",".join(names).encode(), headers=[*TEXT])


SCORE = Prediction(name="score_lines", call=CsvCall, parse=parse, encode=encode, header=b"x-decimals")
CSV = Protocol(
    owns=lambda path: path.startswith("/csv/"),
    route=route,
    predictions=(SCORE,),
    encode_error=encode_error,
    open_paths=frozenset({"/csv/models"}),
)
