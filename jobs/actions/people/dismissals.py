"""Dismisses things under "Needs you" on Home, for one person, until something new happens to them."""

from datetime import timedelta

from django.db import transaction

from jobs import clock
from jobs.errors import Conflict
from jobs.models import Dismissal, User
from jobs.queries.dismissals import Need
from jobs.queries.home import needs_of

KEPT = timedelta(days=90)
"""After this time nothing that was dismissed is listed any more."""


def dismiss(need: Need, *, by: User) -> None:
    """Hide a thing from a person's list, in its present state.

    Raises:
        Conflict: it is not in the list, or has another state meanwhile.
    """
    if need not in needs_of(by).needs:
        raise Conflict("This is not in your list any more, or something new happened to it.")
    now = clock.now()
    with transaction.atomic():
        Dismissal.objects.filter(user=by, created__lt=now - KEPT).delete()
        Dismissal.objects.update_or_create(
            user=by, kind=need.kind, row=need.row, defaults={"state": need.state, "created": now}
        )


def restore_dismissed(*, by: User) -> None:
    """List everything again that a person has dismissed."""
    Dismissal.objects.filter(user=by).delete()
