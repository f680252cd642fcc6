"""Implements `Idempotency-Key`: a repeated POST has no further effect and returns the first response."""

import functools
import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja.decorators import decorate_view

from jobs.actions import idempotency
from jobs.errors import TrainyardError
from jobs.models import IdempotencyKey
from webapp.api import throttle
from webapp.api.auth import Caller, caller
from webapp.api.media import MULTIPART
from webapp.api.problems import problem, problem_of


def idempotent_view(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap an operation so that it supports the header. Requests without it are not affected."""

    @functools.wraps(run)
    def once(request: HttpRequest, **arguments: Any) -> HttpResponse:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return run(request, **arguments)
        if not 0 < len(key) <= 200:
            return problem(422, "An Idempotency-Key must have 1 to 200 characters.")
        try:
            return _run_once(request, key, caller(request), lambda: run(request, **arguments))
        except TrainyardError as error:
            return problem_of(error)

    return once


idempotent = decorate_view(idempotent_view)
"""Decorator of operations that create rows. Decisions do not need it: a repeated one is refused as stale."""


def _run_once(request: HttpRequest, key: str, who: Caller, run: Callable[[], HttpResponse]) -> HttpResponse:
    """Run an operation and store its response under a key, or return the response that is stored."""
    digest = _body_digest(request)
    # With the token in the key, a token with fewer scopes cannot replay the responses of another.
    own_key = f"{who.token.pk if who.token else 'session'}:{key}"
    row, is_new = idempotency.claim(who.user, own_key, request.path[:200], digest)
    # The same key with another body is a mistake of the client; the stored response would hide it.
    if row.body_digest != digest:
        return problem(
            422, "This Idempotency-Key was used with a different body.", code="idempotency_mismatch"
        )
    if not is_new:
        if row.status is None:
            raise idempotency.in_flight()
        throttle.consume(who.key)  # otherwise the authentication of the operation does this
        return _replayed(row)
    try:
        with transaction.atomic():  # the rows and the stored response are committed together
            response = run()
            if response.status_code < 300:
                idempotency.keep(row, response.status_code, _stored(response))
            else:
                transaction.set_rollback(True)
    except BaseException:
        row.delete()  # a request without effect releases its key, so that a repetition runs
        raise
    if row.status is None:
        row.delete()
    return response


def _body_digest(request: HttpRequest) -> str:
    if request.content_type != MULTIPART:
        return hashlib.sha256(request.body).hexdigest()
    # Clients choose a new boundary for each request, so a form is hashed by its fields and files.
    digest = hashlib.sha256(json.dumps(sorted(request.POST.lists())).encode())
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            digest.update(json.dumps([name, getattr(file, "name", "")]).encode())
            for chunk in file.chunks():
                digest.update(chunk)
            file.seek(0)  # the operation reads it next
    return digest.hexdigest()


def _stored(response: HttpResponse) -> dict[str, Any]:
    kept = ("Content-Type", "Location", "ETag")
    return {
        "body": response.content.decode(),
        "headers": {name: response[name] for name in kept if response.has_header(name)},
    }


def _replayed(row: IdempotencyKey) -> HttpResponse:
    answer = row.response or {}
    headers = {**answer.get("headers", {}), "Idempotency-Replayed": "true"}
    return HttpResponse(answer.get("body", ""), status=row.status, headers=headers)
