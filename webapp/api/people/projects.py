"""Operations on projects and their members."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from ninja.responses import Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.people import people
from jobs.actions.storage import deletions
from jobs.answers.people.projects import MemberOut, ProjectOut
from jobs.models import Role
from jobs.queries.people import projects as queries
from jobs.queries.people.people import get_account
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.paging import Page, Paging, paginate, paginate_bulk
from webapp.api.shapes import In, Name, Slug

router = Router()
BY_SLUG = {"slug": "slug", "created": "created"}
BY_USER = {"user": "user__username"}


class ProjectIn(In):
    """A new project."""

    slug: Slug = Field(examples=["vision"])
    name: Name = Field(examples=["Vision"])


class ProjectChange(In):
    """The project fields that can be changed."""

    name: Name | None = None
    single_person: bool | None = Field(
        None,
        description="Whether people may approve the requests that they make from now on. Switched by "
        "administrators of the installation, and switched on only by one without an open request here.",
    )


class MemberIn(In):
    """A person and a role."""

    user: str = Field(max_length=150, examples=["grace"])
    role: Role = Field(examples=["approver"])


@router.get("/projects", response=Page[ProjectOut])
def list_projects(request: HttpRequest, paging: Query[Paging]) -> Page[ProjectOut]:
    """List the caller's projects."""
    who = actor(request)
    rows = access.projects_of(who).select_related("created_by")
    return paginate_bulk(
        Page[ProjectOut],
        rows,
        paging,
        lambda projects: queries.projects_out(projects, who),
        sorts=BY_SLUG,
        default="slug",
    )


@router.post("/projects", response={201: ProjectOut})
@idempotent
def create_project(request: HttpRequest, body: ProjectIn) -> Status[ProjectOut]:
    """Create a project. The caller becomes its admin."""
    who = actor(request)
    project = people.create_project(body.slug, body.name, by=who)
    return Status(201, queries.project_out(project, who))


@router.get("/projects/{slug}", response=ProjectOut)
def get_project(request: HttpRequest, slug: str) -> ProjectOut:
    """Return a project."""
    who = actor(request)
    return queries.project_out(access.get_project(who, slug), who)


@router.patch("/projects/{slug}", response=ProjectOut)
def change_project(request: HttpRequest, slug: str, body: ProjectChange) -> ProjectOut:
    """Change a project. Fields that are left out stay as they are."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    changed = people.change_project(
        project, name=body.name, single_person=body.single_person, by=actor(request)
    )
    return queries.project_out(changed, actor(request))


@router.delete("/projects/{slug}", response={204: None})
def delete_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a project with everything in it. Refused if one of its versions was ever released."""
    deletions.delete(access.get_project(actor(request), slug), by=actor(request))
    return HttpResponse(status=204)


@router.get("/projects/{slug}/members", response=Page[MemberOut])
def list_members(request: HttpRequest, slug: str, paging: Query[Paging]) -> Page[MemberOut]:
    """List a project's members and their roles."""
    rows = access.get_project(actor(request), slug).memberships.select_related("user")
    return paginate(Page[MemberOut], rows, paging, queries.member_out, sorts=BY_USER, default="user")


@router.put("/projects/{slug}/members", response=MemberOut)
def set_member(request: HttpRequest, slug: str, body: MemberIn) -> MemberOut:
    """Add a member to a project, or change a member's role."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    membership = people.set_role(project, people.find_person(body.user), body.role, by=actor(request))
    return queries.member_out(membership)


@router.delete("/projects/{slug}/members/{username}", response={204: None})
def remove_member(request: HttpRequest, slug: str, username: str) -> HttpResponse:
    """Remove a member from a project. The person's experiments and jobs remain."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    people.remove_member(project, get_account(username), by=actor(request))
    return HttpResponse(status=204)
