"""Operations on the installation's people."""

from django.db import transaction
from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.actions.people import departures, people, person_limits
from jobs.answers.people.departures import DepartureOut
from jobs.answers.people.people import ChangedPersonOut, InvitedOut, PersonOut
from jobs.errors import BadInput
from jobs.models import User
from jobs.public_path import beside_public_path
from jobs.queries.people import people as queries
from jobs.queries.people.departures import changed_person_out, departure_of, departure_out, unexpired_tokens
from jobs.spec.problems import Problem
from webapp.api.auth import (
    TO_ACCEPT_CHANGES,
    TO_MAKE_ADMINISTRATORS,
    actor,
    needs,
    require_rights_of_admin,
)
from webapp.api.idempotency import idempotent
from webapp.api.paging import Page, Paging, paginate
from webapp.api.people.tokens import receiver
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
    max_slots: int | None = Field(
        None,
        ge=1,
        le=person_limits.HIGHEST,
        description="How many slots the person's jobs may hold at once; null means no limit.",
    )
    hand_tokens_to: str | None = Field(
        None,
        min_length=1,
        max_length=150,
        description="With `active: false`: the person who gets the tokens, so that they keep working.",
    )
    accept_changes: bool = Field(
        False, description="Hand tokens over although they lose or gain rights (409 `rights_differ`)."
    )
    revoke_tokens: bool = Field(False, description="With `active: false`: revoke the tokens for good.")


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
        require_rights_of_admin(request, TO_MAKE_ADMINISTRATORS)
    added = people.add_person(body.user, by=actor(request), admin=body.admin)
    path = beside_public_path(people.create_login_link(added, by=actor(request)))
    person = queries.person_out(added)
    return Status(201, InvitedOut(**vars(person), login_link=request.build_absolute_uri(path)))


@router.patch("/users/{username}", response=ChangedPersonOut, auth=needs("admin"))
def change_user(request: HttpRequest, username: str, body: UserChange) -> ChangedPersonOut:
    """Deactivate or reactivate an account, grant or revoke the admin right, or limit the person's slots.

    The tokens of a deactivated account are kept unless they are handed over or revoked. The answer names
    them: they stop, and work again after a reactivation.

    A token grants the right, and accepts changes of rights, only if it has the scopes `read`, `write`,
    `approve` and `admin`.
    """
    if body.admin:
        require_rights_of_admin(request, TO_MAKE_ADMINISTRATORS)
    # Checked before the account is read: to others, the response must not show whether it exists.
    access.require_admin(actor(request))
    user = queries.get_account(username)
    with transaction.atomic():
        if body.active is False:
            _deactivate(request, user, body)
        elif body.hand_tokens_to is not None or body.revoke_tokens:
            field = "hand_tokens_to" if body.hand_tokens_to is not None else "revoke_tokens"
            raise BadInput(
                "Tokens are moved with active: false.", [Problem(f"/{field}", "needs active: false")]
            )
        active = body.active if body.active is not False else None
        people.change_person(user, active=active, admin=body.admin, by=actor(request))
        if "max_slots" in body.model_fields_set:
            person_limits.set_max_slots(user, body.max_slots, by=actor(request))
    user.refresh_from_db()
    kept = [] if body.active is None else list(unexpired_tokens(user))
    return changed_person_out(user, kept)


def _deactivate(request: HttpRequest, user: User, body: UserChange) -> None:
    to = None
    if body.hand_tokens_to is not None:
        # Otherwise a token with few scopes could give more rights to one that it knows.
        if body.accept_changes:
            require_rights_of_admin(request, TO_ACCEPT_CHANGES)
        to = receiver(body.hand_tokens_to, "/hand_tokens_to")
    departures.deactivate(
        user,
        by=actor(request),
        hand_tokens_to=to,
        accept_changes=body.accept_changes,
        revoke_tokens=body.revoke_tokens,
    )


@router.get("/users/{username}/departure", response=DepartureOut, auth=needs("admin"))
def get_departure(request: HttpRequest, username: str) -> DepartureOut:
    """Return what stops or is stuck if the person's account is deactivated."""
    access.require_admin(actor(request))
    return departure_out(departure_of(queries.get_account(username)))
