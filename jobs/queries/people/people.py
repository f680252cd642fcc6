"""Reads people's accounts, and their memberships in projects."""

from collections.abc import Iterable

from django.db.models import BigIntegerField, Max, Prefetch, QuerySet

from jobs import access
from jobs.answers.people.people import MeOut, PersonOut, ProjectRoleOut
from jobs.errors import NotFound
from jobs.models import Membership, User
from jobs.prepared import Parameter, PreparedQuery

_ACTIVE = PreparedQuery(lambda: User.objects.filter(pk=Parameter("pk", BigIntegerField()), is_active=True))


def people_accounts() -> QuerySet[User]:
    """Return people's accounts, without service accounts."""
    return User.objects.filter(is_service=False)


def visible_accounts(user: User) -> QuerySet[User]:
    """Return the accounts that share a project with `user`. An administrator sees all."""
    if user.is_superuser:
        return people_accounts()
    return people_accounts().filter(memberships__project__in=access.projects_of(user)).distinct()


def get_account(username: str) -> User:
    """Return a person's account, active or not.

    Raises:
        NotFound: there is no such person.
    """
    user = people_accounts().filter(username=username).first()
    if user is None:
        raise NotFound(f"There is no person {username!r}.")
    return user


def describe_deactivation(user: User) -> str:
    """Return the sentence with which an action is refused that needs an active account."""
    return (
        f"The account {user.username} is deactivated. An administrator can reactivate it on the page People, "
        f"or by PATCH /api/v1/users/{user.username}."
    )


def issuers_of(user: User) -> list[User]:
    """Return the login issuers for `user`, whose session cannot decide these people's requests."""
    return list(people_accounts().filter(pk__in=user.login_issuers).order_by("username"))


def active_user(user_id: int) -> User | None:
    """Return the account with this id, a person's or a service's; None if it is not active."""
    return _ACTIVE.first(pk=user_id)


def people_with_projects() -> QuerySet[User]:
    """Return people's accounts with their projects and their tokens' last use."""
    return (
        people_accounts()
        .prefetch_related(
            Prefetch("memberships", Membership.objects.filter(project__deletion=None)), "memberships__project"
        )
        .annotate(token_used=Max("tokens__last_used"))
        .order_by("username")
    )


def memberships_of(user: User) -> QuerySet[Membership]:
    """Return the memberships of `user`, sorted by project slug."""
    rows = Membership.objects.filter(user=user, project__deletion=None)
    return rows.select_related("project").order_by("project__slug")


def person_out(user: User) -> PersonOut:
    """Return an account's API representation."""
    return PersonOut(
        user=user.username,
        admin=user.is_superuser,
        active=user.is_active,
        max_slots=user.max_slots,
        last_login=user.last_login,
        joined=user.date_joined,
    )


def caller_out(user: User, scopes: Iterable[str]) -> MeOut:
    """Describe the API's caller with their projects and scopes."""
    roles = memberships_of(user).values_list("project__slug", "role")
    return MeOut(
        user=user.username,
        admin=user.is_superuser,
        projects=[ProjectRoleOut(slug=slug, role=role) for slug, role in roles],
        scopes=list(scopes),
    )
