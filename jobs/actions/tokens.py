"""Creates, verifies and revokes API tokens. A token is shown once and stored as a hash."""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from jobs import clock, hints
from jobs.actions import audit
from jobs.contracts.problems import Problem
from jobs.errors import BadInput, Forbidden, NotFound
from jobs.models import ApiToken, User

PREFIX = "ty_"
SECRET_BYTES = 32
SHOWN = len(PREFIX) + 6
SCOPES = ("read", "write", "approve", "serve", "admin", "worker")
ADMIN_SCOPES = frozenset({"admin", "worker"})
UNAVAILABLE_SCOPES = frozenset({"worker"})
"""Scopes that cannot be given yet, since no request needs them."""
OFFERED_SCOPES = tuple(scope for scope in SCOPES if scope not in UNAVAILABLE_SCOPES)
USED_RESOLUTION = timedelta(minutes=1)
SERVICE_NAME = "installation"


def create(
    user: User,
    *,
    by: User | None,
    scopes: Collection[str],
    name: str = "",
    expires: datetime | None = None,
) -> tuple[ApiToken, str]:
    """Create a token for `user`; return its row and the token, which cannot be shown again.

    Raises:
        BadInput: there is no scope or an unknown one, or the expiry time is past.
        Forbidden: `by` is another user, or `user` may not have a scope.
    """
    if by is not None and by != user and not by.is_superuser:
        raise Forbidden("You can create tokens only for yourself.")
    if not user.is_active:
        raise Forbidden(f"The account {user.username} is deactivated.")
    wanted = _checked_scopes(user, scopes)
    if expires is not None and expires <= clock.now():
        raise BadInput("A token must expire in the future.", [Problem("/expires", "must be in the future")])
    with transaction.atomic():
        return _new_token(user, name[:100], wanted, expires, by=by)


def _new_token(
    user: User, name: str, scopes: list[str], expires: datetime | None = None, *, by: User | None
) -> tuple[ApiToken, str]:
    """Create a token inside the caller's transaction; return its row and the token."""
    raw = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken.objects.create(
        user=user, name=name, prefix=raw[:SHOWN], digest=digest_of(raw), scopes=scopes, expires=expires
    )
    audit.record("token.create", token, by=by, owner=user.username, scopes=scopes, prefix=token.prefix)
    return token, raw


def authenticate(raw: str) -> ApiToken | None:
    """Return the token row of `raw`, if it is known and not expired, and its owner's account is active."""
    if not raw.startswith(PREFIX):
        return None
    now = clock.estimate()
    unexpired = Q(expires=None) | Q(expires__gt=now)
    # Looking up the hash leaks nothing through timing: an attacker would have to invert a guessed hash.
    token = (
        ApiToken.objects.select_related("user")
        .filter(unexpired, digest=digest_of(raw), user__is_active=True)
        .first()
    )
    # The time of the last use is written at most once a minute, so that most reads write nothing.
    if token is not None and (token.last_used is None or now - token.last_used >= USED_RESOLUTION):
        ApiToken.objects.filter(pk=token.pk).update(last_used=now)
        token.last_used = now
    return token


def still_reads(token_id: int) -> bool:
    """Return whether a token that was authenticated earlier is still valid for reading."""
    token = ApiToken.objects.filter(pk=token_id).first()
    if token is None or "read" not in token.scopes:
        return False
    return token.expires is None or token.expires > clock.estimate()


def revoke(token: ApiToken, *, by: User) -> None:
    """Revoke a token at once.

    Raises:
        NotFound: it belongs to another user and `by` is not an administrator.
    """
    if token.user_id != by.pk and not by.is_superuser:
        raise NotFound("There is no such token.")
    with transaction.atomic():
        audit.record("token.revoke", token, by=by, owner=token.user.username, prefix=token.prefix)
        hints.send("access", user=token.user_id)
        token.delete()


def service_token(scope: str) -> str:
    """Return a new token for a process of this installation; earlier ones of that scope are deleted.

    It belongs to a service account, which is not listed among people and cannot log in.
    """
    with transaction.atomic():
        user, made = User.objects.get_or_create(username=SERVICE_NAME, defaults={"is_service": True})
        if made:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        if not user.is_service:
            raise Forbidden(f"The user name {SERVICE_NAME!r} belongs to a person: rename that account.")
        name = f"service:{scope}"
        ApiToken.objects.filter(user=user, name=name).delete()
        _, raw = _new_token(user, name, [scope], by=None)
    return raw


def digest_of(raw: str) -> str:
    """Return the hash of a token, which is stored instead of the token."""
    return hashlib.sha256(raw.encode("utf-8", "replace")).hexdigest()


def _checked_scopes(user: User, scopes: Collection[str]) -> list[str]:
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        fault = f"unknown scope {unknown[0]!r}" if unknown else "a token needs at least one scope"
        raise BadInput(f"{fault}; choose from {', '.join(OFFERED_SCOPES)}", [Problem("/scopes", fault)])
    if early := sorted(set(scopes) & UNAVAILABLE_SCOPES):
        fault = f"the scope {early[0]} is not available yet"
        raise BadInput(f"{fault}; choose from {', '.join(OFFERED_SCOPES)}", [Problem("/scopes", fault)])
    beyond = sorted(set(scopes) & ADMIN_SCOPES)
    if beyond and not user.is_superuser:
        raise Forbidden(f"The scope {beyond[0]} is only for administrators of the installation.")
    return [scope for scope in SCOPES if scope in scopes]
