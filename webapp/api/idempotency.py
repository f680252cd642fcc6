"""Implements `Idempotency-Key`: a repeated POST has no further effect and returns the first response.

The rows of a request and its stored response are committed together. SQLite allows one writer at a time, so
that transaction must be short: an operation that first reads a large file begins it itself, with `begin`.
"""

import functools
import hashlib
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja.decorators import decorate_view

from jobs.actions import idempotency
from jobs.errors import Conflict, TrainyardError
from jobs.keys import sealing
from jobs.models import IdempotencyKey
from webapp.api import throttle
from webapp.api.auth import Caller, caller
from webapp.api.media import MULTIPART
from webapp.api.problems import problem, problem_of


def _idempotent_view(
    run: Callable[..., HttpResponse], *, begins_itself: bool = False
) -> Callable[..., HttpResponse]:
    """Wrap an operation so that it supports the header. Requests without it are not affected."""

    @functools.wraps(run)
    def respond(request: HttpRequest, **arguments: Any) -> HttpResponse:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return run(request, **arguments)
        try:
            who = caller(request)
            if not 0 < len(key) <= 200:
                return problem(422, "An Idempotency-Key must have 1 to 200 characters.")
            once = _OneRun(request, key, who, begins_itself=begins_itself)
            return once.run(lambda: run(request, **arguments))
        except TrainyardError as error:
            return problem_of(error)

    return respond


idempotent = decorate_view(_idempotent_view)
"""Decorator of operations that create rows. Decisions do not need it: a repeated one is refused as stale."""
idempotent_upload = decorate_view(functools.partial(_idempotent_view, begins_itself=True))
"""The same for an operation that reads files, and then calls `begin` before it writes the first row."""


def begin(request: HttpRequest) -> None:
    """Begin the transaction for the request's rows; without the header, actions have their own ones.

    Raises:
        Conflict: a repeated request has taken over.
    """
    pending = getattr(request, "_idempotent", None)
    if pending is not None:
        pending.begin()


class _OneRun:
    """Runs one request with a key.

    Args:
        request: the request.
        key: the header.
        who: its caller.
        begins_itself: whether the operation calls `begin`.
    """

    _row: IdempotencyKey

    def __init__(self, request: HttpRequest, key: str, who: Caller, *, begins_itself: bool) -> None:
        self._request, self._who, self._begins_itself = request, who, begins_itself
        # With the token in the key, a token with fewer scopes cannot replay the responses of another. The key
        # of the client is stored as a hash: responses, which may contain login links, are encrypted with it.
        self._key = _hash_texts(str(who.token.pk) if who.token else "session", key)
        self._purpose = f"idempotency {who.user.pk} {key}"
        self._transaction = ExitStack()
        self._has_begun = False

    def begin(self) -> None:
        self._transaction.enter_context(transaction.atomic())
        self._has_begun = True
        idempotency.require_own(self._row)

    def run(self, operation: Callable[[], HttpResponse]) -> HttpResponse:
        """Run the operation and store its response, or return the response that is stored."""
        digest = _body_digest(self._request)
        route = _hash_texts(str(self._request.method), self._request.get_full_path())
        row, is_new = idempotency.claim(self._who.user, self._key, route, digest)
        # The same key with another body is a mistake of the client; the stored response would hide it.
        if row.body_digest != digest:
            return problem(
                422, "This Idempotency-Key was used with a different body.", code="idempotency_mismatch"
            )
        if not is_new:
            if row.status is None:
                raise idempotency.in_flight()
            throttle.consume(self._who.key)  # otherwise the authentication of the operation does this
            return _replay_response(row, self._purpose)
        self._row = row
        self._request._idempotent = self  # type: ignore[attr-defined]
        with ExitStack() as undo:
            # A request that fails or stores no response has no effect, so a repetition must run.
            undo.callback(idempotency.release, row)
            with self._transaction:
                response = self._respond(operation)
            if row.status is not None:
                undo.pop_all()
        return response

    def _respond(self, operation: Callable[[], HttpResponse]) -> HttpResponse:
        """Run the operation, and store its response in the transaction of its rows."""
        if not self._begins_itself:
            self.begin()
        response = operation()
        if response.status_code < 300:
            idempotency.keep(self._row, response.status_code, _response_record(response, self._purpose))
        elif self._has_begun:
            transaction.set_rollback(True)
        return response


def _hash_texts(*parts: str) -> str:
    """Return a digest from texts: clients' keys and queries are not stored in clear."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


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


def _response_record(response: HttpResponse, purpose: str) -> dict[str, Any]:
    replayed = ("Content-Type", "Location", "ETag")
    return {
        "body": sealing.seal(response.content.decode(), purpose),
        "headers": {name: response[name] for name in replayed if response.has_header(name)},
    }


def _replay_response(row: IdempotencyKey, purpose: str) -> HttpResponse:
    answer = row.response or {}
    headers = {**answer.get("headers", {}), "Idempotency-Replayed": "true"}
    try:
        body = sealing.unseal(answer.get("body", ""), purpose)
    except sealing.Unreadable as error:
        raise Conflict("The stored response cannot be read: the secret key has changed.") from error
    return HttpResponse(body, status=row.status, headers=headers)
