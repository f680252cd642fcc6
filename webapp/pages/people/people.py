"""Lists the installation's users, invites new ones, and deactivates them. For administrators."""

from dataclasses import dataclass
from typing import NamedTuple

from allauth.mfa.models import Authenticator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.people import people as actions
from jobs.actions.people import person_limits
from jobs.actions.people.invitations import invite
from jobs.errors import BadInput, Conflict
from jobs.models import Role, User
from jobs.placement.sentences import format_slots
from jobs.queries.people import people as query
from jobs.queries.people.departures import kept_tokens_note, unexpired_tokens
from jobs.queries.people.login_states import LoginState, login_states
from webapp.forms.people.people import PersonForm, SlotsForm
from webapp.pages.people.logins import LoginLinkMade, keep_secret, link_of, new_link
from webapp.pages.shortcuts import Request, action, form_page, notify, redirect, render_page
from webapp.template_context import Context


class Account(NamedTuple):
    """A row of the table of people."""

    user: User
    login: LoginState


@dataclass(frozen=True)
class PeoplePage(Context):
    """The installation's users, and the form for a new one."""

    rows: list[Account]
    form: PersonForm


@form_page
def people(request: Request) -> HttpResponse:
    """List users and create new ones."""
    access.require_admin(request.user)
    projects = {row.slug: row for row in access.projects_of(request.user).order_by("name")}
    form = PersonForm(request.POST or None, projects=[(row.slug, row.name) for row in projects.values()])
    if request.method == "POST" and form.is_valid():
        entries = form.cleaned_data
        try:
            invitation = invite(
                entries["username"],
                by=request.user,
                project=projects.get(entries["project"]),
                role=Role(entries["role"] or Role.MEMBER),
                admin=entries["admin"],
            )
        except (BadInput, Conflict) as error:
            form.add_problems(error)
        else:
            return _show_link(request, link_of(request, invitation))
    is_totp = Q(authenticator__type=Authenticator.Type.TOTP)
    people = query.people_with_projects().annotate(has_second_factor=Count("authenticator", filter=is_totp))
    rows = list(people)
    logins = login_states(rows)
    context = PeoplePage(rows=[Account(user, logins[user.pk]) for user in rows], form=form)
    status = 422 if request.method == "POST" else 200
    return render_page(request, "people/list.html", context, status=status)


@dataclass(frozen=True)
class LoginLinkPage(Context):
    """A new login link, which is shown once."""

    made: LoginLinkMade | None


def _show_link(request: Request, made: LoginLinkMade | None) -> HttpResponse:
    return keep_secret(render_page(request, "people/link.html", LoginLinkPage(made=made)))


def _find_person(request: HttpRequest, username: str) -> User:
    access.require_admin(request.user)  # type: ignore[arg-type] # the decorator checked the user
    return query.get_account(username)


@action
def person_link(request: Request, username: str) -> HttpResponse:
    """Create a new login link for a user."""
    return _show_link(request, new_link(request, _find_person(request, username)))


@action
def person_active(request: Request, username: str) -> HttpResponse:
    """Deactivate or reactivate a user."""
    user = _find_person(request, username)
    active = request.POST.get("active") == "1"
    actions.set_active(user, active, by=request.user)
    done = f"{user.username} is {'reactivated' if active else 'deactivated'}."
    notify(request, f"{done} {kept_tokens_note(user, list(unexpired_tokens(user)))}".rstrip())
    return redirect("people")


@action
def person_admin(request: Request, username: str) -> HttpResponse:
    """Grant or revoke the administrator role."""
    user = _find_person(request, username)
    admin = request.POST.get("admin") == "1"
    actions.set_admin(user, admin, by=request.user)
    notify(request, f"{user.username} is {'now' if admin else 'no longer'} an administrator.")
    return redirect("people")


@action
def person_slots(request: Request, username: str) -> HttpResponse:
    """Set how many slots a user's jobs may hold at once."""
    user = _find_person(request, username)
    limit = SlotsForm.read(request.POST).max_slots
    person_limits.set_max_slots(user, limit, by=request.user)
    most = "any number of slots" if limit is None else f"at most {format_slots(limit)}"
    notify(request, f"{user.username}'s jobs may hold {most} at once.")
    return redirect("people")


urls = [
    path("people", people, name="people"),
    path("people/<str:username>/link", person_link, name="person_link"),
    path("people/<str:username>/active", person_active, name="person_active"),
    path("people/<str:username>/slots", person_slots, name="person_slots"),
    path("people/<str:username>/admin", person_admin, name="person_admin"),
]
