"""Operations on the caller's API tokens."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from ninja.responses import Status
from pydantic import AwareDatetime, Field

from jobs.actions import tokens
from jobs.contracts.answers.tokens import NewTokenOut, TokenOut
from jobs.errors import Forbidden
from jobs.queries import tokens as queries
from webapp.api.auth import actor, caller
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import Id, In

router = Router()
BY_ID = {"id": "pk"}


class TokenIn(In):
    """A new token."""

    scopes: list[str] = Field(min_length=1, max_length=10, examples=[["read", "write"]])
    name: str = Field("", max_length=100)
    expires: AwareDatetime | None = Field(None, description="null: the token does not expire.")


@router.get("/tokens", response=Page[TokenOut])
def list_tokens(request: HttpRequest, paging: Query[Paging]) -> Page[TokenOut]:
    """List the caller's tokens."""
    return paginate(Page[TokenOut], queries.own(actor(request)), paging, queries.shown_token, sorts=BY_ID)


@router.post("/tokens", response={201: NewTokenOut})
def create_token(request: HttpRequest, body: TokenIn) -> Status[NewTokenOut]:
    """Create a token for the caller. It cannot have more scopes than the caller's own credentials."""
    # Otherwise a token for reading could create one for writing.
    beyond = sorted(set(body.scopes) - set(caller(request).scopes))
    if beyond:
        raise Forbidden(
            f"The credentials of this request lack the scope {', '.join(beyond)}.", code="scope_missing"
        )
    token, secret = tokens.create(
        actor(request), by=actor(request), scopes=body.scopes, name=body.name, expires=body.expires
    )
    return Status(201, NewTokenOut(**vars(queries.shown_token(token)), token=secret))


@router.delete("/tokens/{token_id}", response={204: None})
def revoke_token(request: HttpRequest, token_id: Id) -> HttpResponse:
    """Revoke a token. It stops working at once."""
    tokens.revoke(queries.get(token_id), by=actor(request))
    return HttpResponse(status=204)
