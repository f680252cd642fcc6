"""Reads API tokens."""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from jobs import access, clock
from jobs.answers.people.tokens import TokenOut
from jobs.answers.registry.endpoints import AccessOut, KnownAccessOut
from jobs.errors import Forbidden, NotFound
from jobs.models import ApiToken, User


def own_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user`."""
    return ApiToken.objects.filter(user=user)


def visible_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user`, newest first. An administrator sees all."""
    rows = ApiToken.objects.all() if user.is_superuser else own_tokens(user)
    return rows.select_related("user").order_by("-created")


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
