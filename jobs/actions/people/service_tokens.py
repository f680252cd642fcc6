"""Makes the credentials of prediction servers, and the dashboard's own token for them.

They belong to a service account, which is not listed among people and cannot log in. A credential's name is
that of its server in reports. It is made once; a rotation replaces it, and both are valid for a while.
"""

import re
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from jobs import clock, hints
from jobs.actions.audit import audit
from jobs.actions.people import tokens
from jobs.errors import BadInput, Conflict, Forbidden, NotFound
from jobs.models import ApiToken, User
from jobs.queries.people.tokens import server_credentials
from jobs.spec.problems import Problem

ACCOUNT = "installation"
DASHBOARD_TOKEN = "service:predict"  # noqa: S105 - the name of a token
OVERLAP = timedelta(hours=24)
"""How long a replaced credential stays valid."""
MAX_NAME = 60
# A slash separates the number of a further server with the same credential.
NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MAX_NAME - 1}}}")


def create_credential(name: str, *, by: User | None) -> str:
    """Create the credential of a prediction server. Return the secret, which is shown only once.

    Raises:
        BadInput: the name has other characters than lowercase letters, digits, `.`, `_` and `-`.
        Conflict: there is a credential with this name.
    """
    if not NAME.fullmatch(name):
        fault = (
            f"{name[:80]!r} is not a name: use up to {MAX_NAME} lowercase letters, digits, '.', '_' and '-'"
        )
        raise BadInput(fault, [Problem("/name", fault)])
    with transaction.atomic():
        account = _locked_account()
        if server_credentials().filter(name=name).exists():
            raise Conflict(
                f"There is a credential with the name {name!r}: rotate it, or choose another name."
            )
        return _new_secret(account, name, tokens.SERVER_SCOPE, by=by)


def rotate_credential(name: str, *, overlap: timedelta = OVERLAP, by: User | None) -> str:
    """Replace a prediction server's credential. Return the new secret; the old one ends after `overlap`.

    Raises:
        NotFound: there is no credential with this name.
    """
    with transaction.atomic():
        account = _locked_account()
        old = _credentials_named(name)
        end = clock.now() + overlap
        old.filter(Q(expires=None) | Q(expires__gt=end)).update(expires=end)
        audit.record("serving_token.rotate", f"server:{name}", by=by, valid_until=end.isoformat())
        return _new_secret(account, name, tokens.SERVER_SCOPE, by=by)


def revoke_credential(name: str, *, by: User | None) -> None:
    """End a prediction server's credential at once, with all that it replaced.

    Raises:
        NotFound: there is no credential with this name.
    """
    with transaction.atomic():
        account = _locked_account()
        rows = _credentials_named(name)
        prefixes = list(rows.values_list("prefix", flat=True))
        audit.record("serving_token.revoke", f"server:{name}", by=by, prefixes=prefixes)
        hints.send("access", user=account.pk)
        rows.delete()


def own_credential(current: str, host: str) -> str:
    """Return the credential of this machine's own prediction server.

    Args:
        current: the one that is kept in the home; empty if there is none.
        host: names the server if a credential must be made.
    """
    if _is_valid(current, tokens.SERVER_SCOPE):
        return current
    name = re.sub(r"[^a-z0-9._-]+", "-", host.lower()).strip("-._")[: MAX_NAME - 4] or "local"
    # Another home may have the credential of that name in use: a new one must not end it.
    with transaction.atomic():
        _locked_account()
        taken = set(server_credentials().values_list("name", flat=True))
        free = next(one for one in _numbered(name) if one not in taken)
        return create_credential(free, by=None)


def dashboard_token(current: str) -> str:
    """Return the token with which the dashboard asks prediction servers: `current` while it is valid."""
    if _is_valid(current, "predict"):
        return current
    with transaction.atomic():
        return _new_secret(_locked_account(), DASHBOARD_TOKEN, "predict", by=None)


def _numbered(name: str) -> Any:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _is_valid(secret: str, scope: str) -> bool:
    token = tokens.authenticate(secret)
    return token is not None and token.user.is_service and scope in token.scopes


def _credentials_named(name: str) -> QuerySet[ApiToken]:
    rows = server_credentials().filter(name=name)
    if not rows.exists():
        raise NotFound(f"There is no credential with the name {name!r}.")
    return rows


def _locked_account() -> User:
    """Return the service account, locked until the transaction ends, so that a name is given once."""
    account, is_new = User.objects.get_or_create(username=ACCOUNT, defaults={"is_service": True})
    if is_new:
        account.set_unusable_password()
        account.save(update_fields=["password"])
    if not account.is_service:
        raise Forbidden(f"The user name {ACCOUNT!r} belongs to a person: rename that account.")
    return User.objects.select_for_update().get(pk=account.pk)


def _new_secret(account: User, name: str, scope: str, *, by: User | None) -> str:
    _, raw = tokens.new_token(account, name, [scope], by=by)
    return raw
