"""Creates and changes accounts, login links, projects and memberships."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q

from jobs import access, clock, hints
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.actions.registry import single_person_rule
from jobs.actions.storage.deletions import slug_taken
from jobs.errors import BadInput, Conflict, Forbidden, NotFound
from jobs.models import LoginLink, Membership, Project, Role, Session, User
from jobs.models.sessions import stored_key
from jobs.queries.people.people import describe_deactivation, get_account
from jobs.spec.problems import Problem

LINK_LIFE = timedelta(hours=24)
LINK_PATH = "/login/"
USERNAME = re.compile(r"[\w.@+-]{1,150}")
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def add_person(username: str, *, by: User | None, admin: bool = False) -> User:
    """Create an account without a password. Its owner logs in by a login link.

    Raises:
        Forbidden: `by` is not an administrator. None is the operator at the terminal.
        BadInput: the name has characters other than letters, digits and `.@+-_`.
        Conflict: the name is taken.
    """
    if by is not None:
        access.require_admin(by)
    if not USERNAME.fullmatch(username):
        raise _bad("/user", f"{username!r} is not a valid user name: use letters, digits and .@+-_")
    user = User(username=username, is_superuser=admin, is_staff=admin)
    user.set_unusable_password()
    with transaction.atomic():
        try:
            # A savepoint: without it, PostgreSQL refuses further statements after the error.
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict(f"The user name {username!r} is already taken.") from error
        audit.record("person.add", user, by=by, name=username, admin=admin)
    return user


def create_login_link(user: User, *, by: User | None, ttl: timedelta = LINK_LIFE) -> str:
    """Return the path of a link that logs `user` in once; only the hash of its secret is kept.

    Raises:
        Forbidden: `by` is neither an administrator nor the operator, or the account is deactivated or not a
            person's.
    """
    if by is not None:
        access.require_admin(by)
    require_login_allowed(user)
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        expires = clock.now() + ttl
        issuers = [] if by is None else by.issuers_for(user)
        LoginLink.objects.create(
            user=user, issuer=by, issuers=issuers, digest=_digest(secret), expires=expires
        )
        audit.record("person.login_link", user, by=by, name=user.username, hours=ttl.total_seconds() / 3600)
    return f"{LINK_PATH}{secret}"


def require_login_allowed(user: User) -> None:
    """Refuse an account that cannot log in.

    Raises:
        Forbidden: it is deactivated, or not a person's.
    """
    # A link for the service account would let a person act as the installation.
    if user.is_service:
        raise Forbidden(f"{user.username} is no person's account: it cannot log in.")
    if not user.is_active:
        raise Forbidden(describe_deactivation(user))


def find_login_link(secret: str) -> LoginLink:
    """Return the link with this secret, if it can still be used.

    Raises:
        NotFound: the link is unknown, used or expired, its owner is deactivated, or its maker is no
            administrator any more.
    """
    # A person whose right was revoked may have kept links to other accounts.
    from_administrator = Q(issuer=None) | Q(issuer__is_active=True, issuer__is_superuser=True)
    usable = LoginLink.objects.filter(
        from_administrator, digest=_digest(secret), used=None, expires__gt=clock.now(), user__is_active=True
    )
    link = usable.select_related("user", "issuer").first()
    if link is None:
        raise NotFound("This link is used, expired or void. Ask an administrator for a new one.")
    return link


def spent_login_link(secret: str) -> LoginLink | None:
    """Return the link with this secret if it was used or has expired, or None for an unknown secret."""
    return LoginLink.objects.select_related("user").filter(digest=_digest(secret)).first()


def use_login_link(secret: str) -> LoginLink:
    """Mark a link as used and return it, by compare-and-set: one of two concurrent calls succeeds.

    Its user is not logged in yet: a second factor may be required. If the user has no password, the issuers
    count from now on as people who know it, since one of them may set it.
    """
    link = find_login_link(secret)
    with transaction.atomic():
        if not LoginLink.objects.filter(pk=link.pk, used=None).update(used=clock.now()):
            raise NotFound("This link has already been used. Ask an administrator for a new one.")
        issuer = link.issuer.username if link.issuer else None
        if link.issuer is not None and not link.user.has_usable_password():
            link.user.password_issuers.set(link.issuers)
        audit.record(
            "person.login_link_used", link.user, by=link.user, name=link.user.username, issuer=issuer
        )
    return link


def set_password_issuers(user: User, *, issuers: Iterable[int]) -> None:
    """Record the issuers' ids in the session that set the password."""
    user.password_issuers.set(issuers)


def forget_password(user: User, *, second_factor: bool) -> None:
    """Remove a password that its owner has lost, for the operator at the terminal.

    This ends all sessions, and links that were not used.

    Args:
        user: whose password it is.
        second_factor: whether the second factor is removed as well, for the audit log.
    """
    with transaction.atomic():
        user.set_unusable_password()
        user.save(update_fields=["password"])
        user.password_issuers.clear()
        end_sessions(user)
        # Links that other people made needed the password; without it, they would need nothing.
        LoginLink.objects.filter(user=user, used=None).delete()
        audit.record("person.login_reset", user, by=None, name=user.username, second_factor=second_factor)


def change_person(user: User, *, by: User, active: bool | None = None, admin: bool | None = None) -> User:
    """Change the given fields, all or none. See `set_active` and `set_admin`."""
    with transaction.atomic():
        if active is not None:
            set_active(user, active, by=by)
        if admin is not None:
            set_admin(user, admin, by=by)
    return user


def set_active(user: User, active: bool, *, by: User) -> User:
    """Reactivate or deactivate an account. Deactivation ends its sessions and disables tokens and links.

    Raises:
        Forbidden: `by` is not an administrator.
        Conflict: the account belongs to `by`, or to the only active administrator.
    """
    access.require_admin(by)
    if user == by:
        raise Conflict("You cannot deactivate or reactivate your own account.")
    with transaction.atomic():
        admins = _locked_admins(by)
        if not active:
            _require_another_admin(user, admins)
        User.objects.filter(pk=user.pk).update(is_active=active)
        user.refresh_from_db()
        if not active:
            end_sessions(user)
            LoginLink.objects.filter(user=user, used=None).delete()
        audit.record("person.enable" if active else "person.disable", user, by=by, name=user.username)
        hints.send("access", user=user.pk)
    return user


def set_admin(user: User, admin: bool, *, by: User) -> User:
    """Grant or revoke the installation's admin right. One administrator always remains."""
    access.require_admin(by)
    with transaction.atomic():
        admins = _locked_admins(by)
        if not admin:
            _require_another_admin(user, admins)
        User.objects.filter(pk=user.pk).update(is_superuser=admin, is_staff=admin)
        user.refresh_from_db()
        audit.record("person.set_admin", user, by=by, name=user.username, admin=admin)
        hints.send("access", user=user.pk)
    return user


def _locked_admins(by: User) -> set[int]:
    """Return the administrators' ids, whose rows are locked until the transaction ends.

    Raises:
        Forbidden: `by` is not one of them any more: two may revoke the right of each other at the same time.
    """
    rows = User.objects.select_for_update(no_key=True).filter(
        is_superuser=True, is_active=True, is_service=False
    )
    # All rows are locked, in one order, so that concurrent calls wait for each other without a deadlock.
    admins = {row.pk for row in rows.order_by("pk")}
    if by.pk not in admins:
        raise Forbidden("You are not an administrator of the installation any more.")
    return admins


def _require_another_admin(user: User, admins: set[int]) -> None:
    """Refuse to leave the installation without an administrator, if `user` ceases to be one."""
    if admins <= {user.pk}:
        raise Conflict("The installation would have no administrator left.")


def end_sessions(user: User, *, keep: str | None = None) -> int:
    """End a user's sessions. Return how many there were. Their open pages are notified.

    Args:
        user: the user.
        keep: the cookie key whose session is not ended.
    """
    with transaction.atomic():
        rows = Session.objects.filter(user=user)
        ended, _ = (rows if keep is None else rows.exclude(session_key=stored_key(keep))).delete()
        hints.send("access", user=user.pk)
    return ended


def create_project(slug: str, name: str, *, by: User) -> Project:
    """Create a project. Its creator becomes its admin.

    Raises:
        BadInput: the slug has characters other than lower-case letters, digits and hyphens.
        Conflict: another project has that slug.
    """
    if not by.is_active:
        raise Forbidden(describe_deactivation(by))
    if not SLUG.fullmatch(slug):
        raise _bad(
            "/slug",
            f"{slug!r} is not a valid slug: use up to 63 lower-case letters, digits and inner hyphens",
        )
    if not name.strip():
        raise _bad("/name", "a project needs a name")
    with transaction.atomic():
        try:
            # A savepoint, as in `add_person`.
            with transaction.atomic():
                project = Project.objects.create(slug=slug, name=name.strip(), created_by=by)
        except IntegrityError as error:
            existing = Project.everything.get(slug=slug)
            raise Conflict(slug_taken(f"A project with the slug {slug!r}", existing)) from error
        Membership.objects.create(project=project, user=by, role=Role.ADMIN)
        audit.record("project.create", project, by=by, project=project)
    return project


def change_project(
    project: Project,
    *,
    by: User,
    name: str | None = None,
    single_person: bool | None = None,
) -> Project:
    """Change the given fields, all or none: the name, the single-person rule.

    Raises:
        Forbidden: `by` does not manage the project, or may not switch the single-person rule.
        BadInput: the name is empty.
    """
    access.require(by, project, Action.MANAGE)
    if name is not None and not name.strip():
        raise _bad("/name", "a project needs a name")
    with transaction.atomic():
        if single_person is not None:
            single_person_rule.switch_rule(project, single_person, by=by)
        if name is not None:
            Project.objects.filter(pk=project.pk).update(name=name.strip())
            project.refresh_from_db()
            audit.record("project.change", project, by=by, project=project, name=project.name)
    return project


def set_role(project: Project, user: User, role: Role, *, by: User) -> Membership:
    """Add a person to a project with a role, or change the person's role.

    Raises:
        Conflict: the project would have no admin.
        NotFound: the account is deactivated or not a person's.
    """
    access.require(by, project, Action.MANAGE)
    if user.is_service:
        raise NotFound(f"There is no person {user.username!r}.")
    if not user.is_active:
        raise NotFound(describe_deactivation(user))
    with transaction.atomic():
        _keep_an_admin(project, user, becomes=role)
        membership, _ = Membership.objects.update_or_create(
            project=project, user=user, defaults={"role": role}
        )
        audit.record("project.set_role", user, by=by, project=project, name=user.username, role=role)
        hints.send("access", user=user.pk)
    return membership


def remove_member(project: Project, user: User, *, by: User) -> None:
    """Remove a person from a project. Everything that the person created is kept."""
    access.require(by, project, Action.MANAGE)
    with transaction.atomic():
        _keep_an_admin(project, user, becomes=None)
        gone, _ = Membership.objects.filter(project=project, user=user).delete()
        if not gone:
            raise NotFound(f"{user.username} is not a member of {project.slug}.")
        audit.record("project.remove_member", user, by=by, project=project, name=user.username)
        hints.send("access", user=user.pk)


def find_person(username: str) -> User:
    """Return a person with an active account, by user name.

    Raises:
        NotFound: there is no such person, or the account is deactivated.
    """
    user = get_account(username)
    if not user.is_active:
        raise NotFound(describe_deactivation(user))
    return user


def _keep_an_admin(project: Project, user: User, *, becomes: Role | None) -> None:
    """Refuse to leave a project without an admin. Locks the rows, since two admins may leave at once."""
    admins = Membership.objects.select_for_update().filter(project=project, role=Role.ADMIN).order_by("pk")
    if becomes != Role.ADMIN and [row.user_id for row in admins] == [user.pk]:
        raise Conflict(f"{project.slug} would have no admin left: make another member admin first.")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _bad(pointer: str, message: str) -> BadInput:
    return BadInput(message, [Problem(pointer, message)])
