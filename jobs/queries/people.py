"""Reads accounts, projects and memberships."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Max, Prefetch, Q, QuerySet

from jobs import access
from jobs.contracts.answers.people import MeOut, PersonOut, ProjectRoleOut
from jobs.errors import NotFound
from jobs.models import Membership, Project, Role, User


def accounts() -> QuerySet[User]:
    """Return the accounts of people, without service accounts."""
    return User.objects.filter(is_service=False)


def visible_accounts(user: User) -> QuerySet[User]:
    """Return all accounts for an administrator, else those of people who share a project with `user`."""
    if user.is_superuser:
        return accounts()
    return accounts().filter(memberships__project__in=access.projects_of(user)).distinct()


def get_account(username: str) -> User:
    """Return the account of a person, active or not.

    Raises:
        NotFound: there is no such person.
    """
    user = accounts().filter(username=username).first()
    if user is None:
        raise NotFound(f"There is no person {username!r}.")
    return user


def issuer_of(user: User) -> User | None:
    """Return who made the login link that the session or the password of `user` came from."""
    return None if user.login_issuer_id is None else accounts().filter(pk=user.login_issuer_id).first()


def active_user(user_id: int) -> User | None:
    """Return the account with this id, a person's or a service's; None if it is not active."""
    return User.objects.filter(pk=user_id, is_active=True).first()


def people() -> QuerySet[User]:
    """Return the accounts of people with their projects and the last use of their tokens."""
    return (
        accounts()
        .prefetch_related(
            Prefetch("memberships", Membership.objects.filter(project__deletion=None)), "memberships__project"
        )
        .annotate(token_used=Max("tokens__last_used"))
        .order_by("username")
    )


@dataclass(frozen=True)
class ProjectView:
    """A project in the list of projects, with its counts."""

    project: Project
    role: Role | None
    members: int
    experiments: int
    running: int


def projects(user: User) -> list[ProjectView]:
    """Return the projects of `user` with the numbers of members, experiments and running jobs."""
    roles = dict(Membership.objects.filter(user=user).values_list("project", "role"))
    # By key: a condition on memberships would also be one of the members that are counted.
    # Distinct, since each row of one relation is repeated for each row of the others.
    rows = Project.objects.filter(pk__in=access.projects_of(user)).annotate(
        members=Count("memberships", distinct=True),
        experiment_count=Count(
            "experiments",
            filter=Q(experiments__archived=False, experiments__deletion=None),
            distinct=True,
        ),
        running=Count("jobs", filter=Q(jobs__state__in=("starting", "running")), distinct=True),
    )
    return [
        ProjectView(
            project=row,
            role=Role(roles[row.pk]) if row.pk in roles else (Role.ADMIN if user.is_superuser else None),
            members=row.members,
            experiments=row.experiment_count,
            running=row.running,
        )
        for row in rows.order_by("name")
    ]


def memberships(user: User) -> QuerySet[Membership]:
    """Return the memberships of `user`, ordered by the slug of the project."""
    rows = Membership.objects.filter(user=user, project__deletion=None)
    return rows.select_related("project").order_by("project__slug")


def members(project: Project) -> QuerySet[Membership]:
    """Return the members of a project, ordered by user name."""
    return project.memberships.select_related("user").order_by("user__username")


def shown_person(user: User) -> PersonOut:
    """Return the API representation of an account."""
    return PersonOut(
        user=user.username,
        admin=user.is_superuser,
        active=user.is_active,
        last_login=user.last_login,
        joined=user.date_joined,
    )


def shown_caller(user: User, scopes: Iterable[str]) -> MeOut:
    """Return the caller of the API with their projects and scopes."""
    roles = memberships(user).values_list("project__slug", "role")
    return MeOut(
        user=user.username,
        admin=user.is_superuser,
        projects=[ProjectRoleOut(slug=slug, role=role) for slug, role in roles],
        scopes=list(scopes),
    )
