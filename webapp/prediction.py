"""Sends requests to the prediction server, for a version's prediction form."""

import contextlib
import functools
import json
import os
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from jobs.errors import Conflict
from transport.authorities import trusted_authorities
from webapp.ops.home import Home

DEFAULT = "http://127.0.0.1:8501"
TIMEOUT = 10.0
IMAGE_FILE = "image.jpg"
"""The file in the commands that send an image."""


def address() -> str:
    """Return the prediction server's address: from the environment, or the file that `up` writes."""
    if configured := os.environ.get("TRAINYARD_SERVING_URL"):
        return configured.rstrip("/")
    try:
        urls = json.loads(_home().urls_file.read_text())
        return str(urls["serving"]).rstrip("/")
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT


LABELLED = "predict?labels=1"
"""The verb of requests whose answers name the classes."""


def curl_line(model: str, body: str, *, verb: str = "predict") -> str:
    """Return a command that sends a request to a model's production version."""
    return f"{_curl(model, verb)} -d {shlex.quote(body)}"


def curl_image(model: str, column: str, *, verb: str = "predict") -> str:
    """Return a command that sends an image file to a model's production version."""
    # `json.dumps` and `printf` leave the place for the base64, `%s`, as it is.
    body = json.dumps({"instances": [{column.replace("%", "%%"): {"b64": "%s"}}]})
    return f'printf {shlex.quote(body)} "$(base64 -w0 {IMAGE_FILE})" | {_curl(model, verb)} -d @-'


def _curl(model: str, verb: str) -> str:
    parts = ["curl", "-s"]
    # On the loopback address, the prediction server asks for no token.
    if urlsplit(address()).hostname not in ("127.0.0.1", "localhost", "::1"):
        parts += ["-H", '"Authorization: Bearer $TOKEN"']
    # Shells give a question mark a meaning of its own.
    return " ".join([*parts, shlex.quote(f"{address()}/v1/models/{model}:{verb}")])


def predict(model: str, version: int, instances: list[Any]) -> Any:
    """Return one version's predictions for input rows.

    Raises:
        Conflict: the prediction server is unavailable or rejects the input.
    """
    path = f"{address()}/v1/models/{model}/versions/{version}:predict"
    headers = {}
    # The file is absent where the prediction server runs on another machine.
    with contextlib.suppress(OSError):
        headers["Authorization"] = f"Bearer {_home().prediction_token_file.read_text().strip()}"
    try:
        answer = _client().post(path, json={"instances": instances}, headers=headers)
        body = answer.json()
    except (httpx2.HTTPError, ValueError) as error:
        raise Conflict(
            f"The prediction server at {address()} did not answer ({type(error).__name__}).", code="away"
        ) from error
    if answer.is_error or "predictions" not in body:
        raise Conflict(
            f"The prediction server rejected the request: {body.get('error', answer.status_code)}",
            code="refused",
        )
    return body["predictions"]


@functools.cache
def _client() -> httpx2.Client:
    """Return this process's client. It is shared, since creating one reads all certificates (40 ms)."""
    return httpx2.Client(timeout=TIMEOUT, trust_env=False, verify=trusted_authorities())


def _home() -> Home:
    return Home(Path(settings.TRAINYARD_HOME))
