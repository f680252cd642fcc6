"""Operations on the caller's API tokens."""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import AwareDatetime, Field

from jobs import access
from jobs.actions.people import departures, people, tokens
from jobs.answers.people.tokens import NewTokenOut, OwnedTokenOut, TokenOut
from jobs.errors import BadInput, NotFound
from jobs.models import User
from jobs.queries.people import tokens as queries
from jobs.spec.problems import Problem
from webapp.api.auth import TO_ACCEPT_CHANGES, actor, caller, needs, require_rights_of_admin
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


class TokenFilters(Schema):
    """The query parameters that filter all tokens."""

    owner: str = Field("", max_length=150, description="A part of the owner's user name.")
    scope: Literal["", "read", "write", "approve", "predict", "serve", "admin"] = ""
    state: Literal["", "valid", "expired", "stopped"] = Field(
        "", description="`stopped`: the owner's account is deactivated."
    )
    unused_days: int = Field(0, ge=0, le=36500, description="Neither used nor made in so many days.")


@router.get("/tokens/all", response=Page[OwnedTokenOut], auth=needs("admin"))
def list_all_tokens(
    request: HttpRequest, paging: Query[Paging], filters: Query[TokenFilters]
) -> Page[OwnedTokenOut]:
    """List the tokens of all people, and the credentials of prediction servers, without secrets.

    `sort` is `created`, `used`, `owner`, `name` or `ends`.
    """
    access.require_admin(actor(request))
    chosen = queries.TokenFilter(**filters.model_dump())
    rows = queries.filter_tokens(queries.visible_tokens(actor(request)), chosen)
    return paginate(
        Page[OwnedTokenOut], rows, paging, queries.owned_token_out, sorts=queries.SORTS, default="-created"
    )


class HandOverIn(In):
    """Who gets a token."""

    to: str = Field(min_length=1, max_length=150, examples=["grace"])
    accept_changes: bool = Field(False, description="Hand over although the token loses or gains rights.")


@router.post("/tokens/{token_id}/hand-over", response=OwnedTokenOut, auth=needs("admin"))
def hand_over_token(request: HttpRequest, token_id: Id, body: HandOverIn) -> OwnedTokenOut:
    """Let a token belong to another person, with those that were created with it. Its secret stays valid.

    A 409 with the code `rights_differ` names the rights that it would lose or gain. A token accepts that only
    if it has the scopes `read`, `write`, `approve` and `admin`.
    """
    access.require_admin(actor(request))
    if body.accept_changes:
        require_rights_of_admin(request, TO_ACCEPT_CHANGES)
    token = queries.get_token(token_id)
    if token.user.is_service:
        raise NotFound("There is no such token.")
    to = receiver(body.to, "/to")
    departures.hand_over([token], to, by=actor(request), accept_changes=body.accept_changes)
    return queries.owned_token_out(queries.get_token(token_id))


def receiver(username: str, pointer: str) -> User:
    """Return the active person who gets tokens.

    Raises:
        BadInput: there is none of that name.
    """
    try:
        return people.find_person(username)
    except NotFound as error:
        raise BadInput(error.message, [Problem(pointer, error.message)]) from error


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
