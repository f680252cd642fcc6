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
            return _once(request, key, caller(request), lambda: run(request, **arguments))
        except TrainyardError as error:
            return problem_of(error)

    return once


idempotent = decorate_view(idempotent_view)
"""Decorator of operations that create rows. Decisions do not need it: a repeated one is refused as stale."""


def _once(request: HttpRequest, key: str, who: Caller, run: Callable[[], HttpResponse]) -> HttpResponse:
    digest = _body_digest(request)
    row, is_new = idempotency.claim(who.user, _key_of(key, who), request.path[:200], digest)
    if row.body_digest != digest:
        return problem(
            422, "This Idempotency-Key was used with a different body.", code="idempotency_mismatch"
        )
    if not is_new:
        if row.status is None:
            raise idempotency.in_flight()
        throttle.consume(who.key)
        return _replayed(row)
    try:
        with transaction.atomic():  # the rows and the stored response are committed together
            response = run()
            if response.status_code < 300:
                idempotency.keep(row, response.status_code, _stored(response))
            else:
                transaction.set_rollback(True)
    except BaseException:
        row.delete()
        raise
    if row.status is None:
        row.delete()
    return response


def _key_of(key: str, who: Caller) -> str:
    """Return the stored key. It contains the token, so that one with fewer scopes cannot replay responses."""
    return f"{who.token.pk if who.token else 'session'}:{key}"


def _body_digest(request: HttpRequest) -> str:
    """Return the digest of a request body. A form is hashed by fields and files: its boundary varies."""
    if request.content_type != MULTIPART:
        return hashlib.sha256(request.body).hexdigest()
    digest = hashlib.sha256(json.dumps(sorted(request.POST.lists())).encode())
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            digest.update(json.dumps([name, getattr(file, "name", "")]).encode())
            _hash_file(digest, file)
    return digest.hexdigest()


def _hash_file(digest: Any, file: Any) -> None:
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)


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
