"""Operations on the installation's people."""

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.actions.people import people
from jobs.answers.people.people import InvitedOut, PersonOut
from jobs.public_path import beside_public_path
from jobs.queries.people import people as queries
from webapp.api.auth import actor, needs, require_rights_of_admin
from webapp.api.idempotency import idempotent
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import In

router = Router()
BY_NAME = {"user": "username"}


class UserIn(In):
    """A new person."""

    user: str = Field(min_length=1, max_length=150, pattern=r"^[\w.@+-]+$", examples=["grace"])
    admin: bool = Field(False, description="Whether the person administers the installation.")


class UserChange(In):
    """The account fields that can be changed."""

    active: bool | None = None
    admin: bool | None = None


@router.get("/users", response=Page[PersonOut], auth=needs("read", "admin"))
def list_users(request: HttpRequest, paging: Query[Paging]) -> Page[PersonOut]:
    """List people. Administrators see everyone, others the people who share a project with them."""
    rows = queries.visible_accounts(actor(request))
    return paginate(Page[PersonOut], rows, paging, queries.person_out, sorts=BY_NAME, default="user")


@router.post("/users", response={201: InvitedOut}, auth=needs("admin"))
@idempotent
def add_user(request: HttpRequest, body: UserIn) -> Status[InvitedOut]:
    """Add a person. The response has a link that logs the person in once.

    A token adds an administrator only if it has the scopes `read`, `write`, `approve` and `admin`.
    """
    if body.admin:
        require_rights_of_admin(request)
    added = people.add_person(body.user, by=actor(request), admin=body.admin)
    path = beside_public_path(people.create_login_link(added, by=actor(request)))
    person = queries.person_out(added)
    return Status(201, InvitedOut(**vars(person), login_link=request.build_absolute_uri(path)))


@router.patch("/users/{username}", response=PersonOut, auth=needs("admin"))
def change_user(request: HttpRequest, username: str, body: UserChange) -> PersonOut:
    """Deactivate or reactivate an account, or grant or revoke the admin right.

    A token grants the right only if it has the scopes `read`, `write`, `approve` and `admin`.
    """
    if body.admin:
        require_rights_of_admin(request)
    # Checked before the account is read: to others, the response must not show whether it exists.
    access.require_admin(actor(request))
    user = queries.get_account(username)
    people.change_person(user, active=body.active, admin=body.admin, by=actor(request))
    return queries.person_out(user)
