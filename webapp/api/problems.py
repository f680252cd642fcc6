"""Renders all API errors as `application/problem+json` (RFC 9457)."""

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from jobs.errors import BadInput, InUse, TrainyardError
from jobs.spec.problems import Problem
from webapp.http_errors import Throttled, Unavailable
from webapp.json_text import names_with_nul

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
    400: "The request is malformed.",
    404: "Not found, or not visible to you.",
    405: "The method is not allowed here. The Allow header lists the allowed methods.",
    413: "The request is larger than this server accepts.",
    500: "Internal error. It has been logged.",
    503: "A required component is unavailable. Try again in a moment.",
}


def problem(
    status: int,
    detail: str,
    *,
    code: str | None = None,
    errors: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
    **fields: Any,
) -> HttpResponse:
    """Return a problem document.

    Args:
        status: the HTTP status.
        detail: a sentence for people.
        code: a stable code for programs; the default depends on the status.
        errors: the invalid places in the request body.
        headers: further response headers.
        fields: further members in the document.
    """
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code or CODES.get(status, "error"),
    }
    if errors:
        body["errors"] = [
            {name: value for name, value in error._asdict().items() if value is not None} for error in errors
        ]
    # RFC 9110 requires this header in every 401.
    required = {"WWW-Authenticate": 'Bearer realm="trainyard"'} if status == HTTPStatus.UNAUTHORIZED else {}
    return HttpResponse(
        json.dumps(body | fields),
        status=status,
        content_type=MEDIA_TYPE,
        headers={**required, **(headers or {})},
    )


def problem_of(error: TrainyardError) -> HttpResponse:
    """Return an error's problem document."""
    seconds = error.retry_after if isinstance(error, Throttled | Unavailable) else None
    headers = None if seconds is None else {"Retry-After": str(seconds)}
    errors = error.problems if isinstance(error, BadInput) else ()
    fields = {}
    if isinstance(error, InUse):
        fields["referrers"] = [referrer.model_dump() for referrer in error.referrers]
    return problem(error.status, error.message, code=error.code, errors=errors, headers=headers, **fields)


class ProblemMiddleware:
    """Replaces Django's own error responses under `/api/v1/` (404, 405, 413, 500, …) by problem documents."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(PREFIX):
            return self.get_response(request)
        # PostgreSQL's columns accept no NUL.
        if "\0" in request.path:
            return problem(400, "The path of the address has a NUL character: remove %00.")
        try:
            named = names_with_nul(request.GET)
        except TooManyFieldsSent:
            return problem(400, "The address has too many parameters.")
        if named:
            parameters = ", ".join(repr(name) for name in named)
            return problem(400, f"The parameter {parameters} of the address has a NUL character: remove %00.")
        response = self.get_response(request)
        if response.status_code < 400 or response.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        status = response.status_code
        headers = {name: response[name] for name in ("Allow", "Retry-After") if response.has_header(name)}
        return problem(status, SENTENCES.get(status, HTTPStatus(status).description), headers=headers)
