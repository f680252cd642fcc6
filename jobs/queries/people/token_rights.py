"""Compares the rights of a token under two owners: it never has more rights than its owner."""

from collections.abc import Collection
from dataclasses import dataclass

from jobs import access
from jobs.access import ALLOWED, Action
from jobs.models import ApiToken, Endpoint, Membership, Project, Role, User

READING = frozenset({"read", "predict"})
"""Scopes with which a token only reads, whatever the role of its owner."""
EVERYWHERE = "all projects, as an administrator of the installation"


@dataclass(frozen=True)
class RightsChange:
    """The rights that a token loses and gains by another owner, in words; empty if nothing changes."""

    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.gained)

    def __str__(self) -> str:
        parts = [
            f"{verb} {', '.join(words)}"
            for verb, words in (("loses", self.lost), ("gains", self.gained))
            if words
        ]
        return " and ".join(parts)


def rights_change(token: ApiToken, to: User) -> RightsChange:
    """Return the rights that a token would lose and gain if it belonged to `to`."""
    lost: list[str] = []
    gained: list[str] = []
    owner = token.user
    limit = _projects_of_endpoints(token)
    roles, new_roles = _roles(owner, limit), _roles(to, limit)
    for slug in sorted({*roles, *new_roles}):
        before, after = (_useful(all_roles.get(slug), token.scopes) for all_roles in (roles, new_roles))
        words = f"{slug} ({roles.get(slug) or 'no member'} → {new_roles.get(slug) or 'no member'})"
        if before - after:
            lost.append(words)
        # A token for named endpoints asks no others.
        if after - before and limit is None:
            gained.append(words)
    if limit is None and owner.is_superuser != to.is_superuser:
        (lost if owner.is_superuser else gained).insert(0, EVERYWHERE)
    if access.lacks_second_factor(to) and set(token.scopes) - READING:
        lost.append(f"approvals, endpoints and members: {to.username} has no second factor")
    return RightsChange(tuple(lost), tuple(gained))


def _projects_of_endpoints(token: ApiToken) -> set[int] | None:
    """Return the projects to which a token for predictions is limited; None if it is not."""
    if token.endpoints is None or set(token.scopes) - {"predict"}:
        return None
    rows = Endpoint.objects.filter(model__name__in=token.endpoints)
    return set(rows.values_list("model__project", flat=True))


def _roles(user: User, limit: set[int] | None) -> dict[str, Role]:
    """Return roles by the slugs of projects. Those of an administrator matter where they are limited."""
    if user.is_superuser and limit is not None:
        slugs = Project.objects.filter(pk__in=limit).values_list("slug", flat=True)
        return dict.fromkeys(slugs, Role.ADMIN)
    # One who administers the installation has all rights everywhere, which is one sentence.
    if user.is_superuser:
        return {}
    rows = Membership.objects.filter(user=user, project__deletion=None)
    if limit is not None:
        rows = rows.filter(project__in=limit)
    return {slug: Role(role) for slug, role in rows.values_list("project__slug", "role")}


def _useful(role: Role | None, scopes: Collection[str]) -> frozenset[Action]:
    """Return the actions of a role for which a token with these scopes can be used."""
    if role is None:
        return frozenset()
    return ALLOWED[role] & {Action.VIEW} if READING.issuperset(scopes) else ALLOWED[role]
