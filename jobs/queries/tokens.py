"""Reads API tokens."""

from django.db.models import QuerySet

from jobs.contracts.answers.tokens import TokenOut
from jobs.errors import NotFound
from jobs.models import ApiToken, User


def own(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user`."""
    return ApiToken.objects.filter(user=user)


def visible(user: User) -> QuerySet[ApiToken]:
    """Return all tokens for an administrator, else those of `user`; newest first."""
    rows = ApiToken.objects.all() if user.is_superuser else own(user)
    return rows.select_related("user").order_by("-created")


def get(token_id: int) -> ApiToken:
    """Return a token by id, of any user. `actions.tokens.revoke` checks the permission.

    Raises:
        NotFound: there is no such token.
    """
    token = ApiToken.objects.select_related("user").filter(pk=token_id).first()
    if token is None:
        raise NotFound("There is no such token.")
    return token


def shown_token(token: ApiToken) -> TokenOut:
    """Return the API representation of a token, without its secret."""
    return TokenOut(
        id=token.pk,
        name=token.name,
        prefix=token.prefix,
        scopes=token.scopes,
        expires=token.expires,
        last_used=token.last_used,
        created=token.created,
    )
