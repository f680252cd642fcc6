"""Projects and who may what in them."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions import people
from jobs.models import Membership, Project, Role
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import In, Json, Name, Slug, Time

router = Router()
BY_SLUG = {"slug": "slug", "created": "created"}
BY_USER = {"user": "user__username"}


class ProjectIn(In):
    """A project to be made."""

    slug: Slug = Field(examples=["vision"])
    name: Name = Field(examples=["Vision"])


class ProjectChange(In):
    """What may be changed of a project; `max_slots: null` lifts the quota."""

    name: Name | None = None
    single_person: bool | None = None
    max_slots: int | None = Field(None, ge=1, le=1_000_000)


class ProjectOut(Schema):
    """A project and one's role in it."""

    slug: str
    name: str
    role: str | None
    single_person: bool
    max_slots: int | None
    created_by: str
    created: Time


class MemberIn(In):
    """Somebody's role."""

    user: str = Field(max_length=150, examples=["grace"])
    role: Role = Field(examples=["approver"])


class MemberOut(Schema):
    """A member."""

    user: str
    role: str


def _shown(project: Project, request: HttpRequest) -> Json:
    role = access.role_in(actor(request), project)
    return {
        "slug": project.slug,
        "name": project.name,
        "role": role.value if role else None,
        "single_person": project.single_person,
        "max_slots": project.max_slots,
        "created_by": project.created_by.username,
        "created": project.created,
    }


def _member(membership: Membership) -> Json:
    return {"user": membership.user.username, "role": membership.role}


@router.get("/projects", response=Page[ProjectOut])
def list_projects(request: HttpRequest, paging: Query[Paging]) -> Page[Json]:
    """List your projects."""
    rows = access.projects_of(actor(request)).select_related("created_by")
    return cut(rows, paging, lambda project: _shown(project, request), sorts=BY_SLUG, default="slug")


@router.post("/projects", response={201: ProjectOut})
@idempotent
def create_project(request: HttpRequest, body: ProjectIn) -> Status[Any]:
    """Make a project; you become its admin."""
    return Status(201, _shown(people.create_project(body.slug, body.name, by=actor(request)), request))


@router.get("/projects/{slug}", response=ProjectOut)
def get_project(request: HttpRequest, slug: str) -> Json:
    """Return one project."""
    return _shown(access.get_project(actor(request), slug), request)


@router.patch("/projects/{slug}", response=ProjectOut)
def change_project(request: HttpRequest, slug: str, body: ProjectChange) -> Json:
    """Change what is given of a project."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    lift = "max_slots" in body.model_fields_set and body.max_slots is None
    changed = people.change_project(
        project,
        name=body.name,
        single_person=body.single_person,
        max_slots=body.max_slots,
        lift_quota=lift,
        by=actor(request),
    )
    return _shown(changed, request)


@router.delete("/projects/{slug}", response={204: None})
def delete_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a project with its experiments, jobs and data sets."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    people.delete_project(project, by=actor(request))
    return HttpResponse(status=204)


@router.get("/projects/{slug}/members", response=Page[MemberOut])
def list_members(request: HttpRequest, slug: str, paging: Query[Paging]) -> Page[Json]:
    """List who may what in a project."""
    rows = access.get_project(actor(request), slug).memberships.select_related("user")
    return cut(rows, paging, _member, sorts=BY_USER, default="user")


@router.put("/projects/{slug}/members", response=MemberOut)
def set_member(request: HttpRequest, slug: str, body: MemberIn) -> Json:
    """Give somebody a role in a project, or another one."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    return _member(people.set_role(project, people.find_person(body.user), body.role, by=actor(request)))


@router.delete("/projects/{slug}/members/{username}", response={204: None})
def remove_member(request: HttpRequest, slug: str, username: str) -> HttpResponse:
    """Take somebody out of a project; what they made stays."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    people.remove_member(project, people.find_person(username), by=actor(request))
    return HttpResponse(status=204)
