"""One's own API tokens: made once, shown once."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import AwareDatetime, Field

from jobs.actions import tokens
from jobs.errors import Forbidden
from jobs.models import ApiToken
from jobs.queries import tokens as queries
from webapp.api.auth import actor, caller
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Id, In, Json, Time

router = Router()
BY_ID = {"id": "pk"}


class TokenIn(In):
    """A token to be made."""

    scopes: list[str] = Field(min_length=1, max_length=10, examples=[["read", "write"]])
    name: str = Field("", max_length=100)
    expires: AwareDatetime | None = None


class TokenOut(Schema):
    """A token as lists show it: by its first signs."""

    id: int
    name: str
    prefix: str
    scopes: list[str]
    expires: Time | None
    last_used: Time | None
    created: Time


class NewToken(TokenOut):
    """A new token, with the secret that is shown this once."""

    token: str


def _shown(token: ApiToken) -> Json:
    return {
        "id": token.pk,
        "name": token.name,
        "prefix": token.prefix,
        "scopes": token.scopes,
        "expires": token.expires,
        "last_used": token.last_used,
        "created": token.created,
    }


@router.get("/tokens", response=Page[TokenOut])
def list_tokens(request: HttpRequest, paging: Query[Paging]) -> Page[Json]:
    """List your tokens."""
    return cut(queries.own(actor(request)), paging, _shown, sorts=BY_ID)


@router.post("/tokens", response={201: NewToken})
def create_token(request: HttpRequest, body: TokenIn) -> Status[Any]:
    """Make a token of yours. A token makes none with more scopes than it has itself."""
    beyond = sorted(set(body.scopes) - set(caller(request).scopes))
    if beyond:
        raise Forbidden(f"This token lacks {', '.join(beyond)} itself.", code="scope_missing")
    token, secret = tokens.create(
        actor(request), by=actor(request), scopes=body.scopes, name=body.name, expires=body.expires
    )
    return Status(201, {**_shown(token), "token": secret})


@router.delete("/tokens/{token_id}", response={204: None})
def revoke_token(request: HttpRequest, token_id: Id) -> HttpResponse:
    """End a token at once."""
    tokens.revoke(queries.get(token_id), by=actor(request))
    return HttpResponse(status=204)
