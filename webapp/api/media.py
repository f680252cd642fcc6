"""What may be sent and how it is read; what is sent back."""

import json
import math
from typing import Any, cast

import orjson
from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser
from ninja.renderers import JSONRenderer
from ninja.types import DictStrAny

from jobs.contracts.problems import Problem
from jobs.errors import BadInput
from webapp.http_errors import UnsupportedMediaType
from webapp.json_text import read_json

JSON = "application/json; charset=utf-8"
MULTIPART = "multipart/form-data"


class JsonParser(Parser):
    """Reads a JSON body; only what JSON allows, and only if it is called JSON."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        """Return the body as Python values."""
        if request.content_params is not None:  # a part of a form has none
            kind = request.content_type or "nothing"
            if kind != "application/json" and not kind.endswith("+json"):
                raise UnsupportedMediaType(f"The body is sent as {kind}; send application/json.")
        return cast(DictStrAny, read_json(request.body))


def is_multipart(request: HttpRequest) -> bool:
    """Say whether the body is a form with files; the other thing it may be is JSON.

    Raises:
        UnsupportedMediaType: it is neither.
    """
    kind = request.content_type or "nothing"
    if kind == MULTIPART:
        return True
    if kind == "application/json":
        return False
    raise UnsupportedMediaType(f"The body is sent as {kind}; send {MULTIPART} or application/json.")


def form_text(request: HttpRequest, name: str, default: str | None = None) -> str:
    """Return a text field of a multipart form.

    Raises:
        BadInput: it is missing and has no default.
    """
    value = request.POST.get(name, default)
    if value is None or "\0" in value:
        raise BadInput(f"The form lacks {name!r}.", [Problem(f"/{name}", "Field required")])
    return value


class FiniteRenderer(JSONRenderer):
    """Writes NaN and infinities as null and marks the object around them with `"nonfinite": true`."""

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> str:  # noqa: ARG002
        """Return `data` as JSON text."""
        try:
            return json.dumps(data, cls=self.encoder_class, allow_nan=False)
        except ValueError:
            return json.dumps(_finite(data), cls=self.encoder_class, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        marked = {key: _finite(item) for key, item in value.items()}
        return marked | {"nonfinite": True} if any(_holds_nonfinite(v) for v in value.values()) else marked
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if _is_nonfinite(value) else value


def _is_nonfinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _holds_nonfinite(value: Any) -> bool:
    """Say whether `value` is such a number, or a list of them without an object of its own to mark."""
    if isinstance(value, list | tuple):
        return any(_holds_nonfinite(item) for item in value)
    return _is_nonfinite(value)


def fast_json(body: Any) -> HttpResponse:
    """Return a large answer of plain values and NumPy columns; what is not finite is null."""
    content = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return HttpResponse(content, content_type=JSON)
