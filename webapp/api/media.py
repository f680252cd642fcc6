"""Parses request bodies and renders responses as JSON."""

import json
import math
from typing import Any, cast

import orjson
from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser
from ninja.renderers import JSONRenderer
from ninja.types import DictStrAny

from jobs.errors import BadInput
from jobs.spec.problems import Problem
from webapp.http_errors import UnsupportedMediaType
from webapp.json_text import nul_refused, read_json

JSON = "application/json; charset=utf-8"
MULTIPART = "multipart/form-data"


class JsonParser(Parser):
    """Parses JSON bodies strictly, and refuses other media types."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        """Return the body as Python values."""
        if request.content_params is not None:  # None for a part of a form
            kind = request.content_type or "nothing"
            if kind != "application/json" and not kind.endswith("+json"):
                raise UnsupportedMediaType(f"The body has the type {kind}; send application/json.")
        return cast(DictStrAny, read_json(request.body))


def is_multipart(request: HttpRequest) -> bool:
    """Return whether the body is a multipart form; otherwise it is JSON.

    Raises:
        UnsupportedMediaType: the body is neither.
    """
    kind = request.content_type or "nothing"
    if kind == MULTIPART:
        return True
    if kind == "application/json":
        return False
    raise UnsupportedMediaType(f"The body has the type {kind}; send {MULTIPART} or application/json.")


def form_text(request: HttpRequest, name: str, default: str | None = None) -> str:
    """Return a text field in a multipart form.

    Raises:
        BadInput: the field is missing and has no default, is given twice, or contains a NUL character.
    """
    values = form_texts(request, name)
    if len(values) > 1:
        raise BadInput(f"The form has {name!r} {len(values)} times.", [Problem(f"/{name}", "Send it once")])
    if not values and default is None:
        raise BadInput(f"The form lacks {name!r}.", [Problem(f"/{name}", "Field required")])
    return values[0] if values else str(default)


def form_texts(request: HttpRequest, name: str) -> list[str]:
    """Return the texts of a field in a multipart form that may be given several times.

    Raises:
        BadInput: one contains a NUL character.
    """
    values = request.POST.getlist(name)
    # PostgreSQL's columns accept no NUL.
    if any("\0" in value for value in values):
        raise nul_refused([f"/{name}"])
    return values


class FiniteRenderer(JSONRenderer):
    """Writes NaN and infinities as null and adds `"nonfinite": true` to the object that contains them."""

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> str:  # noqa: ARG002
        """Return `data` as JSON text."""
        # Nearly all responses are finite, so only the others pay for the walk through their values.
        try:
            return json.dumps(data, cls=self.encoder_class, allow_nan=False)
        except ValueError:
            return json.dumps(_finite(data), cls=self.encoder_class, allow_nan=False)


def _finite(value: Any) -> Any:
    """Return `value` with null for each number that is not finite, and objects marked that contain one."""
    if isinstance(value, dict):
        marked = {key: _finite(item) for key, item in value.items()}
        return marked | {"nonfinite": True} if any(_holds_nonfinite(v) for v in value.values()) else marked
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if _is_nonfinite(value) else value


def _is_nonfinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _holds_nonfinite(value: Any) -> bool:
    """Return whether `value` is not finite, or a list (at any depth) that contains such a number."""
    if isinstance(value, list | tuple):
        return any(_holds_nonfinite(item) for item in value)
    return _is_nonfinite(value)


def fast_json(body: Any) -> HttpResponse:
    """Return a response with plain values and NumPy columns. Numbers that are not finite are null.

    For large responses: nothing is validated, and the caller adds `nonfinite`.
    """
    content = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return HttpResponse(content, content_type=JSON)
