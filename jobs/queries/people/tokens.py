"""Reads API tokens."""

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from django.db.models import Prefetch, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from jobs import access, clock
from jobs.answers.people.tokens import OwnedTokenOut, TokenOut
from jobs.answers.registry.endpoints import AccessOut, KnownAccessOut
from jobs.errors import Forbidden, NotFound
from jobs.models import ApiToken, Membership, User


def own_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user`."""
    return ApiToken.objects.filter(user=user)


def visible_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user`, newest first. An administrator sees all."""
    rows = ApiToken.objects.all() if user.is_superuser else own_tokens(user)
    related = Prefetch("user__memberships", Membership.objects.filter(project__deletion=None))
    rows = rows.select_related("user").prefetch_related(related, "user__memberships__project")
    return rows.order_by("-created")


type State = Literal["valid", "expired", "stopped"]
SORTS = {"created": "pk", "used": "used", "owner": "user__username", "name": "name", "ends": "ends"}
"""The orders of a list: their name, and the column, which is never null."""
NEVER_USED = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NEVER_ENDS = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class TokenFilter:
    """Which tokens a list has. An empty field filters nothing.

    Attributes:
        owner: a part of the owner's user name.
        scope: a scope that they have.
        state: `stopped` are those whose owner is deactivated.
        unused_days: not used, nor made, in so many days.
    """

    owner: str = ""
    scope: str = ""
    state: State | Literal[""] = ""
    unused_days: int = 0


def filter_tokens(rows: QuerySet[ApiToken], chosen: TokenFilter) -> QuerySet[ApiToken]:
    """Return the rows that a filter leaves, with the columns that sort lists."""
    now = clock.estimate()
    rows = rows.annotate(
        used=Coalesce("last_used", Value(NEVER_USED)), ends=Coalesce("expires", Value(NEVER_ENDS))
    )
    if chosen.owner:
        rows = rows.filter(user__username__icontains=chosen.owner)
    if chosen.scope:
        # As text, because SQLite cannot look into a list. No name of a scope is a part of another one.
        rows = rows.filter(scopes__icontains=f'"{chosen.scope}"')
    if chosen.state == "expired":
        rows = rows.filter(ends__lte=now)
    elif chosen.state:
        rows = rows.filter(ends__gt=now, user__is_active=chosen.state == "valid")
    if chosen.unused_days:
        since = now - dt.timedelta(days=chosen.unused_days)
        rows = rows.filter(used__lt=since, created__lt=since)
    return rows


def server_credentials() -> QuerySet[ApiToken]:
    """Return the valid credentials of prediction servers. During a rotation, two have the same name."""
    own = ApiToken.objects.filter(_unexpired(), user__is_service=True, scopes=["serve"])
    return own.order_by("name", "pk")


def _unexpired() -> Q:
    return Q(expires=None) | Q(expires__gt=clock.estimate())


def get_token(token_id: int) -> ApiToken:
    """Return any user's token by id. `actions.tokens.revoke` checks the permission.

    Raises:
        NotFound: there is no such token.
    """
    token = ApiToken.objects.select_related("user").filter(pk=token_id).first()
    if token is None:
        raise NotFound("There is no such token.")
    return token


def token_out(token: ApiToken) -> TokenOut:
    """Return a token's API representation, without its secret."""
    return TokenOut(
        id=token.pk,
        name=token.name,
        prefix=token.prefix,
        scopes=token.scopes,
        endpoints=token.endpoints,
        predicts_until=token.predicts_until,
        parent=token.parent_id,
        expires=token.expires,
        last_used=token.last_used,
        created=token.created,
    )


def owned_token_out(token: ApiToken) -> OwnedTokenOut:
    """Return a token's API representation with its owner."""
    return OwnedTokenOut(
        **vars(token_out(token)),
        owner=token.user.username,
        service=token.user.is_service,
        owner_active=token.user.is_active,
        projects=sorted(membership.project.slug for membership in token.user.memberships.all()),
    )


def serving_access(user: User, token: ApiToken | None) -> AccessOut:
    """Return the endpoints that `user` may query with `token`, or with a session if it is None.

    Raises:
        Forbidden: the token is not for predictions, or no longer.
    """
    names = access.served_endpoints(user).order_by("model__name").values_list("model__name", flat=True)
    return _access(list(names), token)


def known_access(digests: Collection[str]) -> list[KnownAccessOut]:
    """Return the access that tokens give now, by their digests. Unknown and ended tokens are left out."""
    rows = ApiToken.objects.filter(_unexpired(), digest__in=digests, user__is_active=True)
    names: dict[int, list[str]] = {}
    known = []
    for token in rows.select_related("user"):
        if token.user_id not in names:
            served = access.served_endpoints(token.user).order_by("model__name")
            names[token.user_id] = list(served.values_list("model__name", flat=True))
        try:
            given = _access(names[token.user_id], token)
        except Forbidden:
            known.append(
                KnownAccessOut(digest=token.digest, endpoints=None, expires=None, warning=None, metrics=False)
            )
        else:
            known.append(KnownAccessOut(digest=token.digest, **given.model_dump()))
    return known


def _access(names: list[str], token: ApiToken | None) -> AccessOut:
    if token is None:
        return AccessOut(endpoints=names, expires=None, warning=None, metrics=False)
    expires, warning = token.expires, None
    metrics = reads_metrics(token)
    if "predict" not in token.scopes:
        until = token.predicts_until
        if until is None or until <= clock.estimate():
            if metrics:
                return AccessOut(endpoints=None, expires=expires, warning=None, metrics=True)
            raise Forbidden("The token lacks the scope predict.", code="scope_missing")
        expires = min(until, expires or until)
        warning = f"this token asks for predictions until {until:%Y-%m-%d}: use one with the scope predict"
    served = names if token.endpoints is None else [name for name in names if name in token.endpoints]
    return AccessOut(endpoints=served, expires=expires, warning=warning, metrics=metrics)


def reads_metrics(token: ApiToken) -> bool:
    """Return whether a token may read metrics. The rights of its owner may have ended since it was made."""
    return "metrics" in token.scopes and (token.user.is_superuser or token.user.is_service)
