"""The people of the installation."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.actions import people
from jobs.models import User
from jobs.queries import people as queries
from webapp.api.auth import actor, needs
from webapp.api.idempotency import idempotent
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import In, Json, Time

router = Router()
BY_NAME = {"user": "username"}


class UserIn(In):
    """Somebody to be let in."""

    user: str = Field(min_length=1, max_length=150, pattern=r"^[\w.@+-]+$", examples=["grace"])
    admin: bool = False


class UserChange(In):
    """What may be changed of an account."""

    active: bool | None = None
    admin: bool | None = None


class UserOut(Schema):
    """A person."""

    user: str
    admin: bool
    active: bool
    last_login: Time | None
    joined: Time


class Invited(UserOut):
    """A new person, with the link that logs them in once."""

    login_link: str


def _shown(user: User) -> Json:
    seen: datetime | None = user.last_login
    return {
        "user": user.username,
        "admin": user.is_superuser,
        "active": user.is_active,
        "last_login": seen,
        "joined": user.date_joined,
    }


@router.get("/users", response=Page[UserOut], auth=needs("read", "admin"))
def list_users(request: HttpRequest, paging: Query[Paging]) -> Page[Json]:
    """List the people: all of them for an administrator, else those who share a project with you."""
    return cut(queries.visible_accounts(actor(request)), paging, _shown, sorts=BY_NAME, default="user")


@router.post("/users", response={201: Invited}, auth=needs("admin"))
@idempotent
def add_user(request: HttpRequest, body: UserIn) -> Status[Any]:
    """Let somebody in; the answer holds the link that logs them in once."""
    added = people.add_person(body.user, by=actor(request), admin=body.admin)
    path = people.create_login_link(added, by=actor(request))
    return Status(201, {**_shown(added), "login_link": request.build_absolute_uri(path)})


@router.patch("/users/{username}", response=UserOut, auth=needs("admin"))
def change_user(request: HttpRequest, username: str, body: UserChange) -> Json:
    """Switch an account off or on, give or take the installation's admin right."""
    access.require_admin(actor(request))
    user = queries.get_account(username)
    if body.active is not None:
        user = people.set_active(user, body.active, by=actor(request))
    if body.admin is not None:
        user = people.set_admin(user, body.admin, by=actor(request))
    return _shown(user)
