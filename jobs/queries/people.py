"""People and projects as their pages show them."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Max, Q, QuerySet

from jobs import access
from jobs.contracts.answers.people import MeOut, PersonOut, ProjectRoleOut
from jobs.errors import NotFound
from jobs.models import Membership, Project, Role, User


def accounts() -> QuerySet[User]:
    """Return the account of every person; the installation's own belongs to none."""
    return User.objects.filter(is_service=False)


def visible_accounts(user: User) -> QuerySet[User]:
    """Return all people for an administrator, else those who share a project with `user`."""
    if user.is_superuser:
        return accounts()
    return accounts().filter(memberships__project__in=access.projects_of(user)).distinct()


def get_account(username: str) -> User:
    """Return a person by name, whether they may log in or not.

    Raises:
        NotFound: there is no such person.
    """
    user = accounts().filter(username=username).first()
    if user is None:
        raise NotFound(f"There is no person {username!r}.")
    return user


def active_user(user_id: int) -> User | None:
    """Return the account with this id, a person's or a service's; None where it is switched off."""
    return User.objects.filter(pk=user_id, is_active=True).first()


def people() -> QuerySet[User]:
    """Return every person (no service account), with the projects they work in and their last token use."""
    return (
        accounts()
        .prefetch_related("memberships__project")
        .annotate(token_used=Max("tokens__last_used"))
        .order_by("username")
    )


@dataclass(frozen=True)
class ProjectView:
    """A project as the list shows it."""

    project: Project
    role: Role | None
    members: int
    experiments: int
    running: int


def projects(user: User) -> list[ProjectView]:
    """Return the projects of `user` with what is in them."""
    roles = dict(Membership.objects.filter(user=user).values_list("project", "role"))
    rows = access.projects_of(user).annotate(
        members=Count("memberships", distinct=True),
        lines=Count("experiments", filter=Q(experiments__archived=False), distinct=True),
        running=Count("jobs", filter=Q(jobs__state__in=("starting", "running")), distinct=True),
    )
    return [
        ProjectView(
            project=row,
            role=Role(roles[row.pk]) if row.pk in roles else (Role.ADMIN if user.is_superuser else None),
            members=row.members,
            experiments=row.lines,
            running=row.running,
        )
        for row in rows.order_by("name")
    ]


def memberships(user: User) -> QuerySet[Membership]:
    """Return the projects of `user` with the role in each, by the projects' slugs."""
    return Membership.objects.filter(user=user).select_related("project").order_by("project__slug")


def members(project: Project) -> QuerySet[Membership]:
    """Return the members of a project by name."""
    return project.memberships.select_related("user").order_by("user__username")


def shown_person(user: User) -> PersonOut:
    """Return a person as the API shows them."""
    return PersonOut(
        user=user.username,
        admin=user.is_superuser,
        active=user.is_active,
        last_login=user.last_login,
        joined=user.date_joined,
    )


def shown_caller(user: User, scopes: Iterable[str]) -> MeOut:
    """Return who calls the API, with their projects and scopes."""
    roles = memberships(user).values_list("project__slug", "role")
    return MeOut(
        user=user.username,
        admin=user.is_superuser,
        projects=[ProjectRoleOut(slug=slug, role=role) for slug, role in roles],
        scopes=list(scopes),
    )
