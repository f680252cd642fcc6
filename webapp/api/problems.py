"""Every refusal as `application/problem+json` (RFC 9457), whoever refuses: an action, ninja or Django."""

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from jobs.contracts.problems import Problem
from jobs.errors import BadInput, TrainyardError
from webapp.http_errors import Throttled

MEDIA_TYPE = "application/problem+json"
PREFIX = "/api/v1/"

CODES = {
    400: "malformed",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    412: "stale_etag",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "throttled",
    500: "internal",
    503: "unavailable",
}
SENTENCES = {
    400: "The request could not be read.",
    404: "There is nothing here, or you may not see it.",
    405: "This address does not know that method; the Allow header lists those it knows.",
    413: "The request is larger than this server takes.",
    500: "Something broke on our side; it has been logged.",
    503: "A part that this needs is away; try again in a moment.",
}


def problem(
    status: int,
    detail: str,
    *,
    code: str | None = None,
    errors: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return one problem document."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code or CODES.get(status, "error"),
    }
    if errors:
        body["errors"] = [{"pointer": error.pointer, "message": error.message} for error in errors]
    return HttpResponse(
        json.dumps(body),
        status=status,
        content_type=MEDIA_TYPE,
        headers={**_extra(status), **(headers or {})},
    )


def _extra(status: int) -> dict[str, str]:
    return {"WWW-Authenticate": 'Bearer realm="trainyard"'} if status == HTTPStatus.UNAUTHORIZED else {}


def refuse(error: TrainyardError) -> HttpResponse:
    """Return the problem document of a refusal."""
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Throttled) else None
    errors = error.problems if isinstance(error, BadInput) else ()
    return problem(error.status, error.message, code=error.code, errors=errors, headers=headers)


class ProblemMiddleware:
    """Turns what Django itself answers below `/api/v1/` (404, 405, 413, 500, …) into problem documents."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer `request`; refuse NUL bytes, which no database column takes."""
        if not request.path.startswith(PREFIX):
            return self.get_response(request)
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return problem(400, "The address holds a NUL byte.")
        response = self.get_response(request)
        if response.status_code < 400 or response.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        return _translated(response)


def _translated(response: HttpResponseBase) -> HttpResponse:
    status = response.status_code
    kept = {name: response[name] for name in ("Allow", "Retry-After") if response.has_header(name)}
    return problem(status, SENTENCES.get(status, HTTPStatus(status).description), headers=kept)
