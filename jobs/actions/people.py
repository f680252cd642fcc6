"""People, their projects and their way in."""

import hashlib
import re
import secrets
from datetime import timedelta

from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction

from jobs import access, clock, hints
from jobs.access import Action
from jobs.actions import audit
from jobs.contracts.problems import Problem
from jobs.errors import BadInput, Conflict, Forbidden, NotFound
from jobs.models import LoginLink, Membership, Project, Role, User
from jobs.states import OPEN

LINK_LIFE = timedelta(hours=24)
LINK_PATH = "/login/"
USERNAME = re.compile(r"[\w.@+-]{1,150}")
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def add_person(username: str, *, by: User | None, admin: bool = False) -> User:
    """Make an account without a password; its owner comes in by a login link.

    Raises:
        Forbidden: `by` is not an administrator (None is the operator at the terminal).
        BadInput: the name has other signs than letters, digits and `.@+-_`.
        Conflict: somebody has that name.
    """
    if by is not None:
        access.require_admin(by)
    if not USERNAME.fullmatch(username):
        raise _bad("/user", f"{username!r} is no user name: letters, digits and .@+-_ will do")
    user = User(username=username, is_superuser=admin, is_staff=admin)
    user.set_unusable_password()
    with transaction.atomic():
        try:
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict(f"Somebody is called {username!r} already.") from error
        audit.record("person.add", user, by=by, name=username, admin=admin)
    return user


def create_login_link(user: User, *, by: User | None, ttl: timedelta = LINK_LIFE) -> str:
    """Return the path of a link that logs `user` in once; only the hash of its secret is kept.

    Raises:
        Forbidden: `by` is neither an administrator nor the operator, or the account is not a person's.
    """
    if by is not None:
        access.require_admin(by)
    if user.is_service or not user.is_active:
        raise Forbidden(f"{user.username} cannot log in.")
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        LoginLink.objects.create(user=user, digest=_digest(secret), expires=clock.now() + ttl)
        audit.record("person.login_link", user, by=by, name=user.username, hours=ttl.total_seconds() / 3600)
    return f"{LINK_PATH}{secret}"


def find_login_link(secret: str) -> LoginLink:
    """Return the link with this secret, if it can still be used.

    Raises:
        NotFound: it is unknown, used, too old, or its owner may not come in any more.
    """
    usable = LoginLink.objects.filter(
        digest=_digest(secret), used=None, expires__gt=clock.now(), user__is_active=True
    )
    link = usable.select_related("user").first()
    if link is None:
        raise NotFound("This link was used already or is too old. Ask an administrator for a new one.")
    return link


def use_login_link(secret: str) -> User:
    """Use a link up and return who may come in by it. Of two that try at once, one gets in."""
    link = find_login_link(secret)
    with transaction.atomic():
        if not LoginLink.objects.filter(pk=link.pk, used=None).update(used=clock.now()):
            raise NotFound("This link was used already. Ask an administrator for a new one.")
        audit.record("person.login", link.user, by=link.user, name=link.user.username)
    return link.user


def set_active(user: User, active: bool, *, by: User) -> User:
    """Let somebody in again, or cut them off at once: sessions end, tokens and links stop working."""
    access.require_admin(by)
    if user == by:
        raise Conflict("Nobody locks themselves out.")
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_active=active)
        user.refresh_from_db()
        if not active:
            end_sessions(user)
            LoginLink.objects.filter(user=user, used=None).delete()
        audit.record("person.enable" if active else "person.disable", user, by=by, name=user.username)
        hints.send("access", user=user.pk)
    return user


def set_admin(user: User, admin: bool, *, by: User) -> User:
    """Give or take the installation's admin right; one administrator always remains."""
    access.require_admin(by)
    with transaction.atomic():
        others = User.objects.select_for_update().filter(is_superuser=True, is_active=True, is_service=False)
        if not admin and not others.exclude(pk=user.pk).exists():
            raise Conflict("The installation would have no administrator left.")
        User.objects.filter(pk=user.pk).update(is_superuser=admin, is_staff=admin)
        user.refresh_from_db()
        audit.record("person.set_admin", user, by=by, name=user.username, admin=admin)
        hints.send("access", user=user.pk)
    return user


def end_sessions(user: User) -> int:
    """Log somebody out everywhere; return how many sessions that were."""
    ended = 0
    for session in Session.objects.filter(expire_date__gt=clock.now()).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()
            ended += 1
    return ended


def create_project(slug: str, name: str, *, by: User, single_person: bool = False) -> Project:
    """Make a project; whoever makes it becomes its admin.

    Raises:
        BadInput: the slug has other signs than small letters, digits and hyphens.
        Conflict: another project has that slug.
    """
    if not by.is_active:
        raise Forbidden("This account is deactivated.")
    if not SLUG.fullmatch(slug):
        raise _bad("/slug", f"{slug!r} is no slug: small letters, digits and hyphens inside, at most 63")
    if not name.strip():
        raise _bad("/name", "a project needs a name")
    with transaction.atomic():
        try:
            with transaction.atomic():
                project = Project.objects.create(
                    slug=slug, name=name.strip(), created_by=by, single_person=single_person
                )
        except IntegrityError as error:
            raise Conflict(f"There is a project {slug!r} already.") from error
        Membership.objects.create(project=project, user=by, role=Role.ADMIN)
        audit.record("project.create", project, by=by, project=project, single_person=single_person)
    return project


def change_project(
    project: Project,
    *,
    by: User,
    name: str | None = None,
    single_person: bool | None = None,
    max_slots: int | None = None,
    lift_quota: bool = False,
) -> Project:
    """Change what is given: the name, whether one person may request and approve, the quota of slots."""
    access.require(by, project, Action.MANAGE)
    if name is not None and not name.strip():
        raise _bad("/name", "a project needs a name")
    if max_slots is not None and max_slots < 1:
        raise _bad("/max_slots", "at least one slot, or none given for no quota")
    wanted = {
        "name": name.strip() if name else None,
        "single_person": single_person,
        "max_slots": max_slots,
    }
    changes: dict[str, str | int | None] = {k: v for k, v in wanted.items() if v is not None}
    if lift_quota:
        changes["max_slots"] = None
    with transaction.atomic():
        if changes:
            Project.objects.filter(pk=project.pk).update(**changes)
            project.refresh_from_db()
            audit.record("project.change", project, by=by, project=project, **changes)
    hints.send("schedule", project=project.pk)
    return project


def delete_project(project: Project, *, by: User) -> None:
    """Delete a project with its experiments, jobs and data sets.

    Raises:
        Conflict: it has registered models, whose history must stay, or jobs that are not over.
    """
    access.require(by, project, Action.MANAGE)
    if project.models.exists():
        raise Conflict("A project with registered models cannot be deleted: their history must stay.")
    if project.jobs.filter(state__in=OPEN).exists():
        raise Conflict("Jobs of this project are not over yet: stop them first.")
    with transaction.atomic():
        audit.record("project.delete", project, by=by, slug=project.slug)
        project.jobs.all().delete()  # first: they protect the revisions they ran
        project.delete()


def set_role(project: Project, user: User, role: Role, *, by: User) -> Membership:
    """Make somebody a member of a project in a role, or change the role."""
    access.require(by, project, Action.MANAGE)
    if user.is_service or not user.is_active:
        raise NotFound(f"There is no person {user.username!r}.")
    with transaction.atomic():
        _keep_an_admin(project, user, becomes=role)
        membership, _ = Membership.objects.update_or_create(
            project=project, user=user, defaults={"role": role}
        )
        audit.record("project.set_role", user, by=by, project=project, name=user.username, role=role)
        hints.send("access", user=user.pk)
    return membership


def remove_member(project: Project, user: User, *, by: User) -> None:
    """Take somebody out of a project; what they made stays."""
    access.require(by, project, Action.MANAGE)
    with transaction.atomic():
        _keep_an_admin(project, user, becomes=None)
        gone, _ = Membership.objects.filter(project=project, user=user).delete()
        if not gone:
            raise NotFound(f"{user.username} is not a member of {project.slug}.")
        audit.record("project.remove_member", user, by=by, project=project, name=user.username)
        hints.send("access", user=user.pk)


def find_person(username: str) -> User:
    """Return a person who may come in, by name."""
    user = User.objects.filter(username=username, is_active=True, is_service=False).first()
    if user is None:
        raise NotFound(f"There is no person {username!r}.")
    return user


def _keep_an_admin(project: Project, user: User, *, becomes: Role | None) -> None:
    """Refuse to leave a project without an admin. The rows are locked: two admins may leave at once."""
    admins = Membership.objects.select_for_update().filter(project=project, role=Role.ADMIN)
    if becomes != Role.ADMIN and [row.user_id for row in admins] == [user.pk]:
        raise Conflict(f"{project.slug} would have no admin left: make another member admin first.")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _bad(pointer: str, message: str) -> BadInput:
    return BadInput(message, [Problem(pointer, message)])
