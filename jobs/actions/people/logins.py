"""Limits guesses at passwords and codes, and records logins in the audit log.

Checking a secret is an attempt. It is counted before the check, so that parallel guesses count too, and
refused during the delay after earlier ones. Attempts are counted for each user name and for each address. The
counts are in the database, so that the delays hold for all web processes.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import transaction
from django.utils.crypto import salted_hmac

from jobs import clock
from jobs.actions.audit import audit
from jobs.client_addresses import client_network
from jobs.errors import TooManyAttempts
from jobs.models import LoginAttempts, LoginLink, Session, User

Step = Literal["password", "code"]
SALT = "trainyard.logins"
FORGOTTEN_AFTER = timedelta(hours=24)
"""A count without further failures begins again after this time."""


@dataclass(frozen=True)
class Limit:
    """The delays after failed attempts: 1 s after the first `free` ones, then twice as long each."""

    free: int
    longest: timedelta

    def delay(self, failures: int) -> timedelta:
        """Return the delay after so many failures."""
        over = failures - self.free
        return timedelta(0) if over < 0 else min(self.longest, timedelta(seconds=2 ** min(over, 20)))


PER_NAME = Limit(free=5, longest=timedelta(minutes=15))
# People behind one proxy share an address.
PER_ADDRESS = Limit(free=30, longest=timedelta(minutes=5))


class CountedAttempt:
    """One attempt to log in, which counts as failed unless `succeed` is called.

    Args:
        name_key: the key under which the user name's attempts are counted.
        address_key: the address's key; None if it is unknown.

    Attributes:
        is_successful: whether `succeed` was called.
        delay_seconds: the seconds from this attempt until the next one is allowed, if this one fails.
    """

    def __init__(self, name_key: str, address_key: str | None) -> None:
        self._name_key = name_key
        self._limits = {name_key: PER_NAME}
        if address_key is not None:
            self._limits[address_key] = PER_ADDRESS
        self._blocked: dict[str, datetime | None] = {}
        self.is_successful = False
        self.delay_seconds = 0

    def begin(self) -> None:
        """Count the attempt.

        Raises:
            TooManyAttempts: the delay after earlier attempts has not passed.
        """
        with transaction.atomic():
            now = clock.now()
            LoginAttempts.objects.filter(last__lt=now - FORGOTTEN_AFTER).delete()
            # In one order, so that two attempts do not wait for each other.
            rows = {key: _locked_row(key, now) for key in sorted(self._limits)}
            ends = [row.blocked_until for row in rows.values() if row.blocked_until is not None]
            if (wait := max((end - now for end in ends), default=timedelta(0))) > timedelta(0):
                raise TooManyAttempts(retry_after=math.ceil(wait.total_seconds()))
            delays = []
            for key, row in rows.items():
                row.failures, row.last = row.failures + 1, now
                delays.append(delay := self._limits[key].delay(row.failures))
                row.blocked_until = self._blocked[key] = now + delay if delay else None
                row.save(update_fields=["failures", "blocked_until", "last"])
            self.delay_seconds = math.ceil(max(delays).total_seconds())

    def succeed(self) -> None:
        """Forget the name's failures; for the address, only this attempt, since others share it."""
        self.is_successful = True
        rows = LoginAttempts.objects.select_for_update().filter(key__in=self._limits)
        with transaction.atomic():
            for row in rows.order_by("key"):
                if row.key == self._name_key:
                    row.delete()
                    continue
                row.failures = max(0, row.failures - 1)
                # A later attempt may have set another end.
                if row.blocked_until == self._blocked[row.key]:
                    row.blocked_until = None
                row.save(update_fields=["failures", "blocked_until"])


def _locked_row(key: str, now: datetime) -> LoginAttempts:
    """Return a key's row, locked until the transaction ends. Create it if there is none."""
    # Locked in the same statement: a row that was only read may be deleted by an attempt that succeeds.
    rows = LoginAttempts.objects.select_for_update()
    return rows.get_or_create(key=key, defaults={"last": now})[0]


@contextmanager
def attempt(step: Step, name: str, *, address: str) -> Iterator[CountedAttempt]:
    """Count an attempt to log in; the caller calls `succeed` in the block if the secret was right.

    Args:
        step: the secret that is checked.
        name: the user name as it was entered.
        address: the client's address; empty if it is unknown.

    Raises:
        TooManyAttempts: the delay after earlier attempts has not passed. The secret must not be checked.
    """
    address_key = _key("address", client_network(address)) if address else None
    counted = CountedAttempt(_key(step, name.casefold()), address_key)
    counted.begin()
    try:
        yield counted
    finally:
        if not counted.is_successful:
            _record_failure(step, name, address, counted.delay_seconds)


def use_code(user: User, code: str) -> bool:
    """Mark an authenticator app's code as used. Return whether it was not used before."""
    return _is_first("code", f"{user.pk} {code}")


def record_login(user: User, *, address: str, how: str, second_factor: bool) -> None:
    """Record a complete login, and delete all users' expired sessions."""
    with transaction.atomic():
        Session.objects.filter(expire_date__lt=clock.now()).delete()
        record_login_change(user, "login", address=address, how=how, second_factor=second_factor)


def record_refused_link(link: LoginLink, *, address: str) -> None:
    """Record that someone tried a link that was used or has expired; once a day for each link."""
    if not _is_first("link", str(link.pk)):
        return
    with transaction.atomic():
        name = link.user.username
        audit.record("person.login_failed", link.user, by=None, name=name, address=address, step="link")


def record_login_change(user: User, verb: str, **detail: Any) -> None:
    """Record a change that a user made to their own account, such as `logout` or `password`."""
    with transaction.atomic():
        audit.record(f"person.{verb}", user, by=user, name=user.username, **detail)


def _record_failure(step: Step, name: str, address: str, delay: int) -> None:
    user = User.objects.filter(username__iexact=name).first()
    # A name without an account is not recorded: people type their password into the wrong field.
    target: User | str = "person:unknown" if user is None else user
    detail: dict[str, Any] = {"address": address, "step": step, "delay_seconds": delay}
    if user is not None:
        detail["name"] = user.username
    with transaction.atomic():
        audit.record("person.login_failed", target, by=None, **detail)


def _is_first(kind: str, value: str) -> bool:
    """Return whether this is the first call with these arguments in `FORGOTTEN_AFTER`."""
    with transaction.atomic():
        _, is_new = LoginAttempts.objects.get_or_create(
            key=_key(f"used {kind}", value), defaults={"last": clock.now()}
        )
    return is_new


def _key(kind: str, value: str) -> str:
    return salted_hmac(SALT, f"{kind} {value}", algorithm="sha256").hexdigest()
