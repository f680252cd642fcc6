"""People and projects as their pages show them."""

from dataclasses import dataclass

from django.db.models import Count, Max, Q, QuerySet

from jobs import access
from jobs.models import Membership, Project, Role, User


def people() -> QuerySet[User]:
    """Return every person (no service account), with the projects they work in and their last token use."""
    return (
        User.objects.filter(is_service=False)
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


def members(project: Project) -> QuerySet[Membership]:
    """Return the members of a project by name."""
    return project.memberships.select_related("user").order_by("user__username")
