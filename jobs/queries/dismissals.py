"""Reads which things under "Needs you" a person has dismissed, and the states in which they come back."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from jobs import clock
from jobs.models import ApiToken, Dismissal, Job, PromotionRequest, User

LAST_HOURS = timedelta(hours=24)
"""A thing that ends is shown again this long before."""


class NeedKind(StrEnum):
    """The kinds of things that need a person."""

    APPROVAL = "approval"
    JOB = "job"
    TOKEN = "token"  # noqa: S105  a kind, no secret


class Need(NamedTuple):
    """A thing that needs a person, in its present state.

    Attributes:
        kind: its kind.
        row: the id of its row.
        state: another text once something new happens to it.
    """

    kind: NeedKind
    row: int
    state: str


type Thing = PromotionRequest | Job | ApiToken


def need_of(thing: Thing) -> Need:
    """Describe a thing in its present state, in which it can be dismissed."""
    if isinstance(thing, Job):
        # It has another end once it was retried.
        return Need(NeedKind.JOB, thing.pk, f"finished {_text(thing.finished)}")
    if isinstance(thing, ApiToken):
        return Need(NeedKind.TOKEN, thing.pk, f"expires {_text(thing.expires)}{_last_hours(thing.expires)}")
    comments = f"{len(thing.decisions.all())} comments"
    return Need(
        NeedKind.APPROVAL,
        thing.pk,
        f"{comments}, expires {_text(thing.expires)}{_last_hours(thing.expires)}",
    )


def dismissed_needs(user: User) -> set[Need]:
    """Return the dismissed things of a person, in the states of that time."""
    rows = Dismissal.objects.filter(user=user).values_list("kind", "row", "state")
    return {Need(NeedKind(kind), row, state) for kind, row, state in rows}


def without_dismissed[T: Thing](things: Iterable[T], dismissed: set[Need]) -> list[T]:
    """Return the things that are not dismissed, or have changed since."""
    return [thing for thing in things if need_of(thing) not in dismissed]


def _text(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()


def _last_hours(ends: datetime | None) -> str:
    return ", soon" if ends is not None and ends - clock.estimate() < LAST_HOURS else ""
