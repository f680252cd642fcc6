"""Deactivates a user, after showing what stops then, and hands the user's tokens over."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.people import departures as actions
from jobs.actions.people.people import find_person
from jobs.errors import Conflict
from jobs.models import User
from jobs.queries.people.departures import (
    Departure,
    departure_of,
    kept_tokens_note,
    receivers,
    unexpired_tokens,
)
from jobs.queries.people.people import get_account
from webapp.forms.people.departures import KEEP, REVOKE, DepartureForm
from webapp.pages.shortcuts import Request, form_page, notify, redirect, render_page
from webapp.template_context import Context


@dataclass(frozen=True)
class DeparturePage(Context):
    """What depends on a user, and the form that deactivates the account or moves its tokens."""

    leaving: User
    departure: Departure
    form: DepartureForm


@form_page
def departure(request: Request, username: str) -> HttpResponse:
    """Show what stops with an account, deactivate it, and hand over or revoke its tokens."""
    access.require_admin(request.user)
    user = get_account(username)
    if user == request.user:
        raise Conflict("You cannot deactivate or reactivate your own account.")
    form = DepartureForm(request.POST or None, user=user, receivers=receivers(user))
    status = 200
    if request.method == "POST":
        done = form.apply(lambda entries: _carry_out(request.user, user, entries))
        if done is not None:
            notify(request, done)
            return redirect("people")
        status = form.status
    context = DeparturePage(leaving=user, departure=departure_of(user), form=form)
    return render_page(request, "people/departure.html", context, status=status)


def _carry_out(by: User, user: User, entries: dict[str, object]) -> str:
    """Apply the form. Return a sentence about the result."""
    what, to = entries["tokens"], None
    if what not in (KEEP, REVOKE):
        to = find_person(str(entries["to"]))
    accept = bool(entries["accept"])
    if user.is_active:
        actions.deactivate(
            user, by=by, hand_tokens_to=to, accept_changes=accept, revoke_tokens=what == REVOKE
        )
        note = kept_tokens_note(user, list(unexpired_tokens(user)))
        return f"{user.username} is deactivated. {note}".rstrip()
    if to is not None:
        actions.hand_over(unexpired_tokens(user), to, by=by, accept_changes=accept)
        return f"The tokens of {user.username} belong to {to.username}."
    if what == REVOKE:
        actions.revoke_all(user, by=by)
        return f"The tokens of {user.username} no longer work."
    return f"{user.username} stays deactivated."


urls = [path("people/<str:username>/departure", departure, name="person_departure")]
