"""Reads browser sessions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY
from django.utils.crypto import constant_time_compare
from django.utils.dateparse import parse_datetime

from jobs import clock
from jobs.models import Session, User
from jobs.models.sessions import stored_key


@dataclass(frozen=True)
class SessionView:
    """A session on its user's page. Sessions without a recorded login have no time and address."""

    is_current: bool
    begun: datetime | None
    how: str
    address: str
    browser: str
    expires: datetime


def is_open_session(key: str, user: User) -> bool:
    """Return whether the stored key belongs to an open session of this user."""
    row = Session.objects.filter(pk=key, user=user, expire_date__gt=clock.estimate()).first()
    if row is None:
        return False
    # The password's hash: a changed password ends sessions whose rows are still there.
    return is_proof(row.get_decoded().get(HASH_SESSION_KEY, ""), user)


def is_proof(proof: str, user: User) -> bool:
    """Return whether a session's proof is of the user's present password."""
    # It may have been made with the secret key before its rotation.
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return any(constant_time_compare(proof, known) for known in hashes)


def open_sessions(user: User, current_key: str | None) -> list[SessionView]:
    """Return a user's open sessions, the current one first, then the newest.

    Args:
        user: the user.
        current_key: the key in the current session's cookie.
    """
    rows = Session.objects.filter(user=user, expire_date__gt=clock.estimate()).order_by("-expire_date")
    current = stored_key(current_key or "")
    views = [_session_view(row, is_current=row.pk == current) for row in rows]
    return sorted(views, key=lambda view: not view.is_current)


def _session_view(row: Session, *, is_current: bool) -> SessionView:
    login: dict[str, Any] = row.get_decoded().get("login", {})
    return SessionView(
        is_current=is_current,
        begun=parse_datetime(login["time"]) if "time" in login else None,
        how=login.get("how", ""),
        address=login.get("address", ""),
        browser=_browser_name(login.get("agent", "")),
        expires=row.expire_date,
    )


def _browser_name(agent: str) -> str:
    """Name the browser and the system in a User-Agent header."""
    # In this order: most browsers also name those that they are compatible with.
    browsers = {"Edg": "Edge", "OPR/": "Opera", "Firefox": "Firefox", "Chrom": "Chrome", "Safari": "Safari"}
    systems = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
    browser = next((name for mark, name in browsers.items() if mark in agent), "another program")
    system = next((name for name in systems if name in agent), "")
    return f"{browser} on {system}" if system else browser
