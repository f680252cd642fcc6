"""Parses the paths of TensorFlow Serving's REST API."""

import re
from typing import Literal, NamedTuple
from urllib.parse import unquote

from workers.model_process.errors import BadRequest
from workers.serving.protocols.target import Target

Verb = Literal["predict", "classify", "regress", "metadata", "status"]

_SELECTOR = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_INFER = re.compile(rf"(?i)/v1/models/(?P<model>[^/:]+){_SELECTOR}:(?P<verb>predict|classify|regress)")
_READ = re.compile(rf"(?i)/v1/models(?:/(?P<model>[^/:]+){_SELECTOR}(?P<verb>/metadata)?)?")
# Versions are int64 in TensorFlow Serving.
_MAX_VERSION = 2**63 - 1


class Route(NamedTuple):
    """The operation and the model."""

    verb: Verb
    target: Target


def route(method: str, path: str) -> Route:
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
    return Route(verb, target)  # type: ignore[arg-type]
