"""Who am I, and what may I do?"""

from django.http import HttpRequest
from ninja import Router, Schema

from jobs.actions.tokens import SCOPES
from jobs.queries.people import memberships
from webapp.api.auth import caller, needs

router = Router()


class RoleIn(Schema):
    """A project and one's role there."""

    slug: str
    role: str


class Me(Schema):
    """The person behind the credentials."""

    user: str
    admin: bool
    projects: list[RoleIn]
    scopes: list[str]


@router.get("/me", response=Me, auth=needs(*SCOPES))
def me(request: HttpRequest) -> Me:
    """Return who the credentials belong to; any scope will do."""
    who = caller(request)
    roles = memberships(who.user)
    return Me(
        user=who.user.username,
        admin=who.user.is_superuser,
        projects=[RoleIn(slug=slug, role=role) for slug, role in roles.values_list("project__slug", "role")],
        scopes=list(who.scopes),
    )
