"""Converts projects and memberships to their API representations."""

from jobs import access
from jobs.contracts.answers.projects import MemberOut, ProjectOut
from jobs.models import Membership, Project, User


def shown_project(project: Project, user: User) -> ProjectOut:
    """Return the API representation of a project, with the role of `user` in it."""
    role = access.role_in(user, project)
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


def shown_member(membership: Membership) -> MemberOut:
    """Return the API representation of a membership."""
    return MemberOut(user=membership.user.username, role=membership.role)


def find_project(slug: str) -> Project | None:
    """Return a project by slug, for the operator at the terminal; None if there is none."""
    return Project.objects.filter(slug=slug).first()
