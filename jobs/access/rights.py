"""Decides which actions a user may do: by roles, the second factor, and administrators' rights."""

from collections.abc import Sequence
from enum import StrEnum

from django.conf import settings
from django.db.models import BigIntegerField, QuerySet

from jobs.errors import Forbidden, NotFound
from jobs.models import (
    Membership,
    Project,
    Role,
    User,
)
from jobs.prepared import Parameter, PreparedQuery


class Action(StrEnum):
    """The actions in a project that need a permission."""

    VIEW = "view"
    WRITE = "write"  # experiments, jobs, datasets, models, promotion requests
    RUN_CODE = "run_code"  # run jobs with code of users
    APPROVE = "approve"  # decide promotion requests
    SERVE = "serve"  # roll back and change the versions of an endpoint
    MANAGE = "manage"  # the project itself and its members


A = Action


# Forms list the roles in this order. An approver cannot write, so that the same person does not both
# create and approve a model.
ALLOWED: dict[Role, frozenset[Action]] = {
    Role.VIEWER: frozenset({A.VIEW}),
    Role.MEMBER: frozenset({A.VIEW, A.WRITE}),
    Role.TRAINER: frozenset({A.VIEW, A.WRITE, A.RUN_CODE}),
    Role.APPROVER: frozenset({A.VIEW, A.APPROVE, A.SERVE}),
    Role.ADMIN: frozenset(Action),
}


SECOND_FACTOR = "second_factor_required"
"""The error code if a user lacks a second factor."""


NEEDS_SECOND_FACTOR = frozenset({A.APPROVE, A.SERVE, A.MANAGE})
"""Actions that take a second factor where the installation requires one."""


_ROLES = PreparedQuery(
    lambda: Membership.objects.filter(user=Parameter("user", BigIntegerField())).values_list(
        "project", "role"
    )
)


def roles_allowing(action: Action) -> list[Role]:
    """List the roles whose permissions include an action."""
    return [role for role in Role if action in ALLOWED[role]]


def requires_second_factor(user: User) -> bool:
    """Return whether `user` must have a second factor: administrators and approvers must."""
    if not settings.TRAINYARD_REQUIRE_SECOND_FACTOR or user.is_service:
        return False
    approving = Membership.objects.filter(user=user, role__in=roles_allowing(Action.APPROVE))
    return user.is_superuser or approving.exists()


def lacks_second_factor(user: User) -> bool:
    """Return whether `user` must have a second factor and has none."""
    if not settings.TRAINYARD_REQUIRE_SECOND_FACTOR or user.is_service:
        return False
    has_one = User.objects.filter(pk=user.pk, authenticator__type="totp").exists()
    return not has_one and requires_second_factor(user)


def second_factor_required() -> Forbidden:
    """Return the error for an action that takes a second factor."""
    return Forbidden(
        "Set up a second factor on the page Account first: approvers and administrators need one.",
        code=SECOND_FACTOR,
    )


def projects_of(user: User, action: Action = Action.VIEW) -> QuerySet[Project]:
    """Return the projects in which `user` may do an action. Installation admins get all."""
    if not user.is_active or (action in NEEDS_SECOND_FACTOR and lacks_second_factor(user)):
        return Project.objects.none()
    if user.is_superuser:
        return Project.objects.all()
    return projects_with_member(user, action)


def projects_with_member(user: User | int, action: Action) -> QuerySet[Project]:
    """Return the projects in which a user's role allows an action."""
    return Project.objects.filter(memberships__user=user, memberships__role__in=roles_allowing(action))


def role_in(user: User, project: Project) -> Role | None:
    """Return the role of `user` in `project`; None without membership. Installation admins are admins."""
    return roles_in(user, [project]).get(project.pk)


def roles_in(user: User, projects: Sequence[Project]) -> dict[int, Role]:
    """Return the role of `user` in each project, by project key, with one query. See `role_in`."""
    if not user.is_active:
        return {}
    if user.is_superuser:
        return {project.pk: Role.ADMIN for project in projects}
    # All the user's roles, since a compiled statement cannot have a project list of unknown length.
    keys = {project.pk for project in projects}
    return {key: Role(role) for key, role in _ROLES.rows(user=user.pk) if key in keys}


def can(user: User, project: Project | None, action: Action) -> bool:
    """Return whether `user` may do `action` in `project`."""
    return action in _allowed_actions(user, project)


def _allowed_actions(user: User, project: Project | None) -> frozenset[Action]:
    """Return the actions that `user` may do in `project`.

    Objects without a project (bundled data sets and their profiles) are visible to everyone and read-only.
    """
    if project is None:
        return frozenset({Action.VIEW}) if user.is_active else frozenset()
    role = role_in(user, project)
    allowed = frozenset() if role is None else ALLOWED[role]
    return allowed - NEEDS_SECOND_FACTOR if lacks_second_factor(user) else allowed


def require(user: User, project: Project | None, action: Action) -> None:
    """Check that `user` may do `action` in `project`.

    Raises:
        NotFound: `user` may not see the project.
        Forbidden: the role of `user` does not allow the action, or a second factor is missing.
    """
    allowed = _allowed_actions(user, project)
    if Action.VIEW not in allowed:
        raise NotFound("There is no such project, or you are not a member of it.")
    if action not in allowed:
        if action in NEEDS_SECOND_FACTOR and lacks_second_factor(user):
            raise second_factor_required()
        # Without a project no role helps: bundled data are read-only for everyone.
        needed = ", ".join(role.label for role in Role if project and action in ALLOWED[role])
        where = f"in {project.slug}" if project else "with bundled data sets"
        hint = f" It takes one of these roles: {needed}." if needed else ""
        raise Forbidden(f"You may not do this {where}.{hint}")


def require_admin(user: User) -> None:
    """Raise `Forbidden` unless `user` is an administrator of the installation."""
    if not (user.is_active and user.is_superuser):
        raise Forbidden("Only an administrator of the installation may do this.")
    if lacks_second_factor(user):
        raise second_factor_required()


def may_delete(user: User, project: Project | None, *, owner: User | None = None) -> bool:
    """Return whether `require_deletion` would allow it."""
    allowed = _allowed_actions(user, project)
    is_owner = owner is not None and owner.pk == user.pk
    return project is not None and (Action.MANAGE in allowed or (is_owner and Action.WRITE in allowed))


def require_deletion(user: User, project: Project | None, *, owner: User | None = None) -> None:
    """Check that `user` may delete an object of `project`: its admins and a writing `owner` may.

    Raises:
        NotFound: `user` may not see the project.
        Forbidden: `user` is neither.
    """
    if not may_delete(user, project, owner=owner):
        require(user, project, Action.MANAGE)
