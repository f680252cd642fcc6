"""Operations on the caller's API tokens."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from ninja.responses import Status
from pydantic import AwareDatetime, Field

from jobs.actions.people import tokens
from jobs.answers.people.tokens import NewTokenOut, TokenOut
from jobs.errors import NotFound
from jobs.queries.people import tokens as queries
from webapp.api.auth import actor, caller
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import Id, In

router = Router()
BY_ID = {"id": "pk"}


class TokenIn(In):
    """A new token."""

    scopes: list[str] = Field(min_length=1, max_length=10, examples=[["read", "write"]])
    name: str = Field("", max_length=100)
    expires: AwareDatetime | None = Field(
        None, description="null: the token does not expire, or ends with the token that creates it."
    )
    endpoints: list[Annotated[str, Field(max_length=100)]] | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="With the scope `predict`: the endpoints that it may ask; null: all of your projects.",
    )


@router.get("/tokens", response=Page[TokenOut])
def list_tokens(request: HttpRequest, paging: Query[Paging]) -> Page[TokenOut]:
    """List the caller's tokens."""
    return paginate(
        Page[TokenOut], queries.own_tokens(actor(request)), paging, queries.token_out, sorts=BY_ID
    )


@router.post("/tokens", response={201: NewTokenOut})
def create_token(request: HttpRequest, body: TokenIn) -> Status[NewTokenOut]:
    """Create a token for the caller.

    A token cannot create one with more scopes or endpoints than it has, nor one that outlives it: the new one
    ends when it expires or is revoked.
    """
    token, secret = tokens.create(
        actor(request),
        by=actor(request),
        scopes=body.scopes,
        name=body.name,
        expires=body.expires,
        endpoints=body.endpoints,
        parent=caller(request).token,
    )
    return Status(201, NewTokenOut(**vars(queries.token_out(token)), token=secret))


@router.delete("/tokens/{token_id}", response={204: None})
def revoke_token(request: HttpRequest, token_id: Id) -> HttpResponse:
    """Revoke a token. It stops working at once, with the tokens that were created with it.

    Other people's tokens are revoked by administrators, with the scope `admin`.
    """
    token = queries.get_token(token_id)
    if token.user_id != actor(request).pk and "admin" not in caller(request).scopes:
        raise NotFound("There is no such token.")
    tokens.revoke(token, by=actor(request))
    return HttpResponse(status=204)
