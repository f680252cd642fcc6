"""API tokens: made once, shown once, kept as a hash."""

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
    """Make a token for `user`; return its row and the token itself, which nobody can show again.

    Raises:
        BadInput: no scope, or an unknown one; an end that is past.
        Forbidden: `by` is somebody else, or a scope goes beyond what `user` may do.
    """
    if by is not None and by != user and not by.is_superuser:
        raise Forbidden("Tokens are made for oneself.")
    if not user.is_active:
        raise Forbidden(f"{user.username} is switched off.")
    wanted = _checked_scopes(user, scopes)
    if expires is not None and expires <= clock.now():
        raise BadInput("A token must end in the future.", [Problem("/expires", "lies in the past")])
    raw = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        token = ApiToken.objects.create(
            user=user,
            name=name[:100],
            prefix=raw[:SHOWN],
            digest=digest_of(raw),
            scopes=wanted,
            expires=expires,
        )
        audit.record("token.create", token, by=by, owner=user.username, scopes=wanted, prefix=token.prefix)
    return token, raw


def authenticate(raw: str) -> ApiToken | None:
    """Return the token that `raw` is, if it is known, not over, and its owner may come in.

    Looking the hash up leaks nothing by time: whoever could guess a hash would have to invert it.
    """
    if not raw.startswith(PREFIX):
        return None
    now = clock.estimate()
    alive = Q(expires=None) | Q(expires__gt=now)
    token = (
        ApiToken.objects.select_related("user")
        .filter(alive, digest=digest_of(raw), user__is_active=True)
        .first()
    )
    if token is not None:
        _note_use(token, now)
    return token


def still_reads(token_id: int) -> bool:
    """Say whether a token that somebody came with a while ago is still good for reading."""
    token = ApiToken.objects.filter(pk=token_id).first()
    if token is None or "read" not in token.scopes:
        return False
    return token.expires is None or token.expires > clock.estimate()


def revoke(token: ApiToken, *, by: User) -> None:
    """End a token at once.

    Raises:
        NotFound: it is somebody else's and `by` is no administrator.
    """
    if token.user_id != by.pk and not by.is_superuser:
        raise NotFound("There is no such token.")
    with transaction.atomic():
        audit.record("token.revoke", token, by=by, owner=token.user.username, prefix=token.prefix)
        hints.send("access", user=token.user_id)
        token.delete()


def service_token(scope: str) -> str:
    """Return a fresh token for a process of this installation; the earlier ones of that scope end.

    It belongs to an account that is no person: it is not listed among people and cannot log in.
    """
    with transaction.atomic():
        user, made = User.objects.get_or_create(username=SERVICE_NAME, defaults={"is_service": True})
        if made:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        if not user.is_service:
            raise Forbidden(f"The name {SERVICE_NAME!r} is taken by a person: rename that account.")
        name = f"service:{scope}"
        ApiToken.objects.filter(user=user, name=name).delete()
        raw = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        token = ApiToken.objects.create(
            user=user, name=name, prefix=raw[:SHOWN], digest=digest_of(raw), scopes=[scope]
        )
        audit.record("token.create", token, by=None, owner=SERVICE_NAME, scopes=[scope], prefix=token.prefix)
    return raw


def digest_of(raw: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(raw.encode("utf-8", "replace")).hexdigest()


def _note_use(token: ApiToken, now: datetime) -> None:
    """Remember the last use, at most once a minute: a read must not be a write each time."""
    if token.last_used is None or now - token.last_used >= USED_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used=now)
        token.last_used = now


def _checked_scopes(user: User, scopes: Collection[str]) -> list[str]:
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        told = f"unknown scope {unknown[0]!r}" if unknown else "a token needs at least one scope"
        raise BadInput(f"{told}; there are {', '.join(SCOPES)}", [Problem("/scopes", told)])
    beyond = sorted(set(scopes) & ADMIN_SCOPES)
    if beyond and not user.is_superuser:
        raise Forbidden(f"The scope {beyond[0]} is for administrators of the installation.")
    return [scope for scope in SCOPES if scope in scopes]
