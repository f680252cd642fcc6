"""Reads API tokens."""

from django.db.models import QuerySet

from jobs import access, clock
from jobs.answers.people.tokens import TokenOut
from jobs.answers.registry.endpoints import AccessOut
from jobs.errors import Forbidden, NotFound
from jobs.models import ApiToken, User


def own_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user`."""
    return ApiToken.objects.filter(user=user)


def visible_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user`, newest first. An administrator sees all."""
    rows = ApiToken.objects.all() if user.is_superuser else own_tokens(user)
    return rows.select_related("user").order_by("-created")


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
    if token is None:
        return AccessOut(endpoints=list(names), expires=None, warning=None)
    expires, warning = token.expires, None
    if "predict" not in token.scopes:
        until = token.predicts_until
        if until is None or until <= clock.estimate():
            raise Forbidden("The token lacks the scope predict.", code="scope_missing")
        expires = min(until, expires or until)
        warning = f"this token asks for predictions until {until:%Y-%m-%d}: use one with the scope predict"
    served = names if token.endpoints is None else names.filter(model__name__in=token.endpoints)
    return AccessOut(endpoints=list(served), expires=expires, warning=warning)
