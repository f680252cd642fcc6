"""Creates, verifies and revokes API tokens. A token is shown once and stored as a hash."""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import CharField, DateTimeField, Q

from jobs import access, clock, hints
from jobs.actions.audit import audit
from jobs.errors import BadInput, Forbidden, NotFound
from jobs.models import ApiToken, User
from jobs.prepared import Parameter, PreparedQuery
from jobs.queries.people.people import describe_deactivation
from jobs.spec.problems import Problem

PREFIX = "ty_"
SECRET_BYTES = 32
SHOWN = len(PREFIX) + 6
SCOPES = ("read", "write", "approve", "predict", "serve", "admin", "worker", "metrics")
METRICS_SCOPE = "metrics"
"""The scope of monitors, which read figures of the whole installation and nothing else."""
ADMIN_SCOPES = frozenset({"admin", "worker", METRICS_SCOPE})
UNAVAILABLE_SCOPES = frozenset({"worker"})
"""Scopes that cannot be given yet, since no request needs them."""
SERVER_SCOPE = "serve"
"""The scope of prediction servers' credentials. No person's token has it."""
OFFERED_SCOPES = tuple(scope for scope in SCOPES if scope not in {*UNAVAILABLE_SCOPES, SERVER_SCOPE})
USED_RESOLUTION = timedelta(minutes=1)

_UNEXPIRED = PreparedQuery(
    lambda: ApiToken.objects.select_related("user").filter(
        Q(expires=None) | Q(expires__gt=Parameter("now", DateTimeField())),
        digest=Parameter("digest", CharField()),
        user__is_active=True,
    )
)


def create(
    user: User,
    *,
    by: User | None,
    scopes: Collection[str],
    name: str = "",
    expires: datetime | None = None,
    endpoints: Collection[str] | None = None,
    parent: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token for `user`. Return its row and the token, which cannot be shown again.

    Args:
        user: its owner.
        by: who creates it; None is the operator at the terminal.
        scopes: its permissions.
        name: its purpose.
        expires: when it ends; None: with its parent, or never.
        endpoints: the endpoints that it may ask for predictions; None: its parent's, or all in the projects
            of `user`.
        parent: the token with which it is created. The new one has no more rights, and ends with it.

    Raises:
        BadInput: a scope or endpoint is unknown, or the expiry time is past or later than that of `parent`.
        Forbidden: `by` is another user, `user` may not have a scope, or `parent` lacks it or was revoked.
    """
    if by is not None and by != user:
        if not by.is_superuser:
            raise Forbidden("You can create tokens only for yourself.")
        access.require_admin(by)
    if not user.is_active:
        raise Forbidden(describe_deactivation(user))
    checked_scopes = _checked_scopes(user, scopes)
    if expires is not None and expires <= clock.now():
        raise BadInput("A token must expire in the future.", [Problem("/expires", "must be in the future")])
    with transaction.atomic():
        if parent is not None:
            _check_within(parent, user, checked_scopes, expires)
            expires = expires or parent.expires
        chosen = _checked_endpoints(user, checked_scopes, endpoints, parent)
        return new_token(user, name[:100], checked_scopes, expires, endpoints=chosen, parent=parent, by=by)


def new_token(
    user: User,
    name: str,
    scopes: list[str],
    expires: datetime | None = None,
    *,
    by: User | None,
    endpoints: list[str] | None = None,
    parent: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token inside the caller's transaction. Return its row and the token."""
    raw = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    # A token for another person is in the hands of who creates it.
    issuers = [] if by is None else by.issuers_for(user)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=raw[:SHOWN],
        digest=digest_of(raw),
        scopes=scopes,
        endpoints=endpoints,
        expires=expires,
        parent=parent,
        login_issuers=issuers,
    )
    more: dict[str, Any] = {} if parent is None else {"parent": parent.prefix}
    audit.record(
        "token.create", token, by=by, owner=user.username, scopes=scopes, prefix=token.prefix, **more
    )
    return token, raw


def _check_within(parent: ApiToken, user: User, scopes: list[str], expires: datetime | None) -> None:
    """Check, in the caller's transaction, that a new token has no more rights than its parent."""
    # Locked: a parent that is revoked meanwhile would leave its child behind.
    if parent.user_id != user.pk or not ApiToken.objects.select_for_update().filter(pk=parent.pk).exists():
        raise Forbidden("The token of this request was revoked.")
    if beyond := [scope for scope in scopes if scope not in parent.scopes]:
        message = f"The credentials of this request lack the scope {', '.join(beyond)}."
        raise Forbidden(message, code="scope_missing")
    if parent.expires is not None and expires is not None and expires > parent.expires:
        fault = f"must not be after {parent.expires.isoformat()}, when the token that creates it expires"
        raise BadInput("A token cannot create one that outlives it.", [Problem("/expires", fault)])


def _checked_endpoints(
    user: User, scopes: list[str], names: Collection[str] | None, parent: ApiToken | None
) -> list[str] | None:
    """Name the endpoints that a new token may ask, or return None for all in its owner's projects."""
    limit = parent.endpoints if parent is not None else None
    if names is None:
        return limit if "predict" in scopes else None
    if "predict" not in scopes:
        fault = "only for tokens with the scope predict"
        raise BadInput("The token asks for no predictions.", [Problem("/endpoints", fault)])
    if not names:
        raise BadInput("No endpoint is named.", [Problem("/endpoints", "name at least one, or leave it out")])
    rows = access.served_endpoints(user).filter(model__name__in=names)
    allowed = set(rows.values_list("model__name", flat=True)) & set(names if limit is None else limit)
    problems = [
        Problem(f"/endpoints/{index}", f"there is no endpoint {name!r} that this token may ask")
        for index, name in enumerate(names)
        if name not in allowed
    ]
    if problems:
        raise BadInput("An endpoint is unknown.", problems)
    return sorted(allowed)


def authenticate(raw: str) -> ApiToken | None:
    """Return the token row for `raw`, if it is known and not expired, and its owner's account is active."""
    if not raw.startswith(PREFIX):
        return None
    now = clock.estimate()
    # Looking up the hash leaks nothing through timing: an attacker would have to invert a guessed hash.
    token = _UNEXPIRED.first(digest=digest_of(raw), now=now)
    if token is not None:
        token.user.login_issuers = frozenset(token.login_issuers)
    # The time of the last use is written at most once a minute, so that most reads write nothing.
    if token is not None and (token.last_used is None or now - token.last_used >= USED_RESOLUTION):
        ApiToken.objects.filter(pk=token.pk).update(last_used=now)
        token.last_used = now
    return token


def describe_refusal(raw: str) -> str:
    """Return why `authenticate` refuses `raw`, in one clause. Only the token's holder learns it."""
    token = ApiToken.objects.select_related("user").filter(digest=digest_of(raw)).first()
    if token is not None and not token.user.is_active:
        return (
            f"its owner {token.user.username} is deactivated; it works again if an administrator reactivates "
            "the account, or hands the token over to another person"
        )
    if token is not None and token.expires is not None and token.expires <= clock.estimate():
        return f"it expired at {token.expires.isoformat(timespec='seconds')}"
    return "it is unknown or was revoked"


def note_use(digests: Collection[str]) -> None:
    """Record that prediction servers were asked with these tokens. A time is kept to the minute."""
    now = clock.estimate()
    stale = Q(last_used=None) | Q(last_used__lte=now - USED_RESOLUTION)
    ApiToken.objects.filter(stale, digest__in=digests).update(last_used=now)


def held_scopes(token: ApiToken) -> tuple[str, ...]:
    """Return the scopes that an authenticated token gives now.

    A token that may predict for some time more, without the scope for it, has this scope until then.
    """
    held = [scope for scope in token.scopes if scope != SERVER_SCOPE or token.user.is_service]
    until = token.predicts_until
    if until is not None and until > clock.estimate() and "predict" not in held:
        held.append("predict")
    return tuple(held)


def still_reads(token_id: int) -> bool:
    """Return whether a token that was authenticated earlier is still valid for reading."""
    token = ApiToken.objects.filter(pk=token_id).first()
    if token is None or "read" not in token.scopes:
        return False
    return token.expires is None or token.expires > clock.estimate()


def revoke(token: ApiToken, *, by: User) -> None:
    """Revoke a token at once, with the tokens that were created with it.

    Raises:
        NotFound: it belongs to another user and `by` is not an administrator.
        Forbidden: the same, and `by` lacks a required second factor.
    """
    if token.user_id != by.pk:
        if not by.is_superuser:
            raise NotFound("There is no such token.")
        access.require_admin(by)
    with transaction.atomic():
        # First, as in `create`, so that no child is added meanwhile.
        ApiToken.objects.select_for_update().filter(pk=token.pk).first()
        children = [child.prefix for child in _descendants(token)]
        more: dict[str, Any] = {"children": children} if children else {}
        audit.record("token.revoke", token, by=by, owner=token.user.username, prefix=token.prefix, **more)
        hints.send("access", user=token.user_id)
        token.delete()


def _descendants(token: ApiToken) -> list[ApiToken]:
    """Return the tokens that were created with a token, directly or by way of others."""
    descendants: list[ApiToken] = []
    newest = [token]
    while newest:
        newest = list(ApiToken.objects.filter(parent__in=newest).order_by("pk"))
        descendants += newest
    return descendants


def digest_of(raw: str) -> str:
    """Return a token's hash, which is stored instead of the token."""
    return hashlib.sha256(raw.encode("utf-8", "replace")).hexdigest()


def _checked_scopes(user: User, scopes: Collection[str]) -> list[str]:
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        fault = f"unknown scope {unknown[0]!r}" if unknown else "a token needs at least one scope"
        raise BadInput(f"{fault}; choose from {', '.join(OFFERED_SCOPES)}", [Problem("/scopes", fault)])
    if early := sorted(set(scopes) & UNAVAILABLE_SCOPES):
        fault = f"the scope {early[0]} is not available yet"
        raise BadInput(f"{fault}; choose from {', '.join(OFFERED_SCOPES)}", [Problem("/scopes", fault)])
    if SERVER_SCOPE in scopes:
        fault = "the scope serve is for prediction servers alone, not for tokens of people"
        message = f"{fault}: an administrator makes one with the command `serving-token NAME`"
        raise BadInput(message, [Problem("/scopes", message)])
    beyond = sorted(set(scopes) & ADMIN_SCOPES)
    if beyond and not user.is_superuser:
        raise Forbidden(f"The scope {beyond[0]} is only for administrators of the installation.")
    return [scope for scope in SCOPES if scope in scopes]
