"""Finds out which things depend on an account, before it is deactivated."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from jobs import clock
from jobs.access import Action, roles_allowing
from jobs.answers.people.departures import DepartureOut
from jobs.answers.people.people import ChangedPersonOut
from jobs.models import ApiToken, Job, Membership, PromotionRequest, ResumableUpload, User
from jobs.queries.people.people import people_accounts, person_out
from jobs.queries.people.tokens import token_out
from jobs.states import OPEN

NAMED = 5
"""The number of tokens that a sentence names."""


@dataclass(frozen=True)
class Departure:
    """What depends on a person.

    Attributes:
        tokens: their tokens that have not expired, the last used one first.
        only_admin_of: the projects that have no other active administrator.
        only_approver_of: the projects in which no other active person may approve.
        requests: their promotion requests that are not decided.
        jobs: how many of their jobs are not finished. They continue.
        uploads: how many of their uploads have not arrived.
    """

    user: User
    tokens: list[ApiToken]
    only_admin_of: list[str]
    only_approver_of: list[str]
    requests: list[PromotionRequest]
    jobs: int
    uploads: int


def departure_of(user: User) -> Departure:
    """Return what depends on `user`, active or not."""
    requests = PromotionRequest.objects.open().filter(requested_by=user)
    return Departure(
        user=user,
        tokens=list(unexpired_tokens(user)),
        only_admin_of=_alone(user, Action.MANAGE),
        only_approver_of=_alone(user, Action.APPROVE),
        requests=list(requests.select_related("version", "model__project").order_by("pk")),
        jobs=Job.objects.filter(created_by=user, state__in=OPEN).count(),
        uploads=ResumableUpload.objects.filter(created_by=user).count(),
    )


def unexpired_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens of `user` that have not expired, the last used one first."""
    rows = ApiToken.objects.filter(Q(expires=None) | Q(expires__gt=clock.estimate()), user=user)
    return rows.select_related("user").order_by("last_used", "pk").reverse()


def kept_tokens_note(user: User, tokens: Sequence[ApiToken]) -> str:
    """Return a sentence on the tokens that `user` has after a change of the account; empty without any."""
    if not tokens:
        return ""
    named = [f"{token.name or 'unnamed'} ({token.prefix}…)" for token in tokens]
    more = f", and {len(named) - NAMED} more" if len(named) > NAMED else ""
    names = ", ".join(named[:NAMED]) + more
    if user.is_active:
        return f"These tokens of {user.username} work again: {names}. Revoke those that should not."
    return (
        f"These tokens of {user.username} are kept: {names}. They stop now, and work again if the account is "
        "reactivated. Hand them over or revoke them if that is not intended."
    )


def receivers(user: User) -> QuerySet[User]:
    """Return the people to whom the tokens of `user` can be handed over."""
    return people_accounts().filter(is_active=True).exclude(pk=user.pk).order_by("username")


def _alone(user: User, action: Action) -> list[str]:
    """Return the projects in which only the role of `user` allows an action, among those of active people."""
    able = Membership.objects.filter(role__in=roles_allowing(action), project__deletion=None)
    others = able.filter(user__is_active=True).exclude(user=user).values("project")
    own = able.filter(user=user).exclude(project__in=others)
    return list(own.order_by("project__slug").values_list("project__slug", flat=True))


def changed_person_out(user: User, tokens: Sequence[ApiToken]) -> ChangedPersonOut:
    """Return a changed account's form in the API.

    Args:
        user: whose account it is.
        tokens: those that stop or work with the change.
    """
    return ChangedPersonOut(
        **vars(person_out(user)),
        kept_tokens=[token_out(token) for token in tokens],
        note=kept_tokens_note(user, tokens),
    )


def departure_out(departure: Departure) -> DepartureOut:
    """Return a departure's form in the API."""
    return DepartureOut(
        user=departure.user.username,
        tokens=[token_out(token) for token in departure.tokens],
        only_admin_of=departure.only_admin_of,
        only_approver_of=departure.only_approver_of,
        promotions=[request.pk for request in departure.requests],
        unfinished_jobs=departure.jobs,
        uploads=departure.uploads,
    )
