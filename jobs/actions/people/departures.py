"""Deactivates an account, and hands its tokens over to another person, so that applications keep working."""

from collections.abc import Iterable

from django.db import transaction

from jobs import access, hints
from jobs.actions.audit import audit
from jobs.actions.people import people, tokens
from jobs.errors import BadInput, Conflict
from jobs.models import ApiToken, User
from jobs.queries.people.departures import unexpired_tokens
from jobs.queries.people.token_rights import RightsChange, rights_change
from jobs.spec.problems import Problem

RIGHTS_DIFFER = "rights_differ"
"""The code of the refusal if a token's rights would change."""


def deactivate(
    user: User,
    *,
    by: User,
    hand_tokens_to: User | None = None,
    accept_changes: bool = False,
    revoke_tokens: bool = False,
) -> User:
    """Deactivate an account, all or nothing. See `people.set_active`.

    Args:
        user: whose account it is.
        by: an administrator.
        hand_tokens_to: who gets the tokens. Otherwise they stop, and work again after a reactivation.
        accept_changes: see `hand_over`.
        revoke_tokens: revoke the tokens for good.

    Raises:
        BadInput: the tokens cannot be both handed over and revoked.
    """
    if hand_tokens_to is not None and revoke_tokens:
        fault = "cannot be combined with handing the tokens over"
        raise BadInput("Tokens are handed over or revoked.", [Problem("/revoke_tokens", fault)])
    access.require_admin(by)
    with transaction.atomic():
        # First, so that there is no moment in which a token does not work.
        if hand_tokens_to is not None:
            hand_over(unexpired_tokens(user), hand_tokens_to, by=by, accept_changes=accept_changes)
        if revoke_tokens:
            revoke_all(user, by=by)
        return people.set_active(user, False, by=by)


def revoke_all(user: User, *, by: User) -> None:
    """Revoke all tokens of a person."""
    access.require_admin(by)
    with transaction.atomic():
        # The others end with these.
        for token in ApiToken.objects.filter(user=user).exclude(parent__user=user).order_by("pk"):
            tokens.revoke(token, by=by)


def hand_over(
    rows: Iterable[ApiToken], to: User, *, by: User, accept_changes: bool = False
) -> list[ApiToken]:
    """Let tokens belong to another person. Their secrets stay valid; so do the tokens made with them.

    The former owner may know the secrets, and counts as an issuer: a token decides nothing of theirs.

    Args:
        rows: the tokens.
        to: the new owner.
        by: an administrator.
        accept_changes: hand over although rights change.

    Raises:
        BadInput: `to` is no active person, or may not have a token's scopes.
        Conflict: tokens would lose or gain rights; the message names them.
    """
    access.require_admin(by)
    if to.is_service or not to.is_active:
        fault = f"{to.username} is no active person"
        raise BadInput(fault, [Problem("/to", fault)])
    with transaction.atomic():
        locked = _with_descendants(rows)
        _require_scopes(locked, to)
        changes = {token.pk: rights_change(token, to) for token in locked}
        if any(changes.values()) and not accept_changes:
            raise Conflict(_describe(locked, changes, to), code=RIGHTS_DIFFER)
        for token in locked:
            _give(token, to, changes[token.pk], by=by)
    return locked


def _with_descendants(rows: Iterable[ApiToken]) -> list[ApiToken]:
    """Lock tokens and those that were created with them."""
    keys = {token.pk for token in rows}
    newest = set(keys)
    while newest:
        newest = set(ApiToken.objects.filter(parent__in=newest).values_list("pk", flat=True)) - keys
        keys |= newest
    locked = ApiToken.objects.select_for_update(of=("self",)).filter(pk__in=keys, user__is_service=False)
    return list(locked.select_related("user").order_by("pk"))


def _require_scopes(rows: Iterable[ApiToken], to: User) -> None:
    for token in rows:
        beyond = tokens.ADMIN_SCOPES.intersection(token.scopes)
        if beyond and not to.is_superuser:
            fault = (
                f"the token {token.name or token.prefix} has the scope {min(beyond)}, which {to.username} "
                "may not have: choose an administrator of the installation, or revoke it"
            )
            raise BadInput(fault, [Problem("/to", fault)])


def _describe(rows: Iterable[ApiToken], changes: dict[int, RightsChange], to: User) -> str:
    words = "; ".join(
        f"{token.name or token.prefix} {changes[token.pk]}" for token in rows if changes[token.pk]
    )
    return f"{to.username} has other rights, which change those of tokens: {words}."


def _give(token: ApiToken, to: User, change: RightsChange, *, by: User) -> None:
    former = token.user
    if former == to:
        return
    token.user = to
    token.login_issuers = sorted({*token.login_issuers, former.pk} - {to.pk})
    token.save(update_fields=["user", "login_issuers"])
    audit.record(
        "token.hand_over",
        token,
        by=by,
        owner=former.username,
        to=to.username,
        prefix=token.prefix,
        scopes=token.scopes,
        lost=change.lost,
        gained=change.gained,
    )
    for person in (former, to):
        hints.send("access", user=person.pk)
