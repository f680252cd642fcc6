"""Reads projects and their members."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from jobs import access
from jobs.answers.people.projects import MemberOut, ProjectOut
from jobs.models import Membership, Project, Role, User
from jobs.states import JobState


@dataclass(frozen=True)
class ProjectView:
    """A project in the project list, with its counts."""

    project: Project
    role: Role | None
    members: int
    experiments: int
    running: int


def projects_with_counts(user: User) -> list[ProjectView]:
    """Return the projects of `user`, and count members, experiments and running jobs in each."""
    roles = dict(Membership.objects.filter(user=user).values_list("project", "role"))
    # By key: a condition on memberships would also be one of the members that are counted.
    # Distinct, since each row in one relation is repeated for each row in the others.
    rows = Project.objects.filter(pk__in=access.projects_of(user)).annotate(
        members=Count("memberships", distinct=True),
        experiment_count=Count(
            "experiments",
            filter=Q(experiments__archived=False, experiments__deletion=None),
            distinct=True,
        ),
        running=Count("jobs", filter=Q(jobs__state__in=(JobState.STARTING, JobState.RUNNING)), distinct=True),
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


def members_of(project: Project) -> QuerySet[Membership]:
    """Return a project's members, ordered by user name."""
    return project.memberships.select_related("user").order_by("user__username")


def project_out(project: Project, user: User) -> ProjectOut:
    """Return a project's API representation, with the role of `user` in it."""
    return _project_out(project, access.role_in(user, project))


def projects_out(projects: Sequence[Project], user: User) -> list[ProjectOut]:
    """Return the projects' API representation, with one query for the roles of `user` in them."""
    roles = access.roles_in(user, projects)
    return [_project_out(project, roles.get(project.pk)) for project in projects]


def _project_out(project: Project, role: Role | None) -> ProjectOut:
    return ProjectOut(
        slug=project.slug,
        name=project.name,
        role=role.value if role else None,
        single_person=project.single_person,
        single_person_at=project.single_person_at,
        max_slots=project.max_slots,
        created_by=project.created_by.username,
        created=project.created,
    )


def member_out(membership: Membership) -> MemberOut:
    """Return a membership's API representation."""
    return MemberOut(user=membership.user.username, role=membership.role)


def find_project(slug: str) -> Project | None:
    """Return a project by slug, for the operator at the terminal; None if there is none."""
    return Project.objects.filter(slug=slug).first()
