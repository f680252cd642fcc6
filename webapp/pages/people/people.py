"""Lists the installation's users, invites new ones, and deactivates them. For administrators."""

from dataclasses import dataclass
from datetime import timedelta

from allauth.mfa.models import Authenticator
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.people import people as actions
from jobs.actions.people import person_limits
from jobs.errors import BadInput, Conflict
from jobs.models import User
from jobs.placement.sentences import format_slots
from jobs.public_path import beside_public_path
from jobs.queries.people import people as query
from jobs.queries.people.departures import kept_tokens_note, unexpired_tokens
from webapp.forms.people.people import PersonForm, SlotsForm
from webapp.pages.shortcuts import Request, action, form_page, notify, redirect, render_page
from webapp.template_context import Context


@dataclass(frozen=True)
class PeoplePage(Context):
    """The installation's users, and the form for a new one."""

    rows: QuerySet[User]
    form: PersonForm


@form_page
def people(request: Request) -> HttpResponse:
    """List users and create new ones."""
    access.require_admin(request.user)
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        entries = form.cleaned_data
        try:
            person = actions.add_person(entries["username"], by=request.user, admin=entries["admin"])
        except (BadInput, Conflict) as error:
            form.add_problems(error)
        else:
            return _show_link(request, person)
    is_totp = Q(authenticator__type=Authenticator.Type.TOTP)
    rows = query.people_with_projects().annotate(has_second_factor=Count("authenticator", filter=is_totp))
    context = PeoplePage(rows=rows, form=form)
    status = 422 if request.method == "POST" else 200
    return render_page(request, "people/list.html", context, status=status)


@dataclass(frozen=True)
class LoginLinkMade(Context):
    """A new login link, which is shown once, and its life in hours."""

    invited: User
    link: str
    hours: int


def _show_link(request: Request, user: User) -> HttpResponse:
    """Create a login link and show it once."""
    link = beside_public_path(actions.create_login_link(user, by=request.user))
    hours = actions.LINK_LIFE // timedelta(hours=1)
    context = LoginLinkMade(invited=user, link=request.build_absolute_uri(link), hours=hours)
    response = render_page(request, "people/link.html", context)
    # The link logs its holder in: it must not stay in a cache.
    response["Cache-Control"] = "no-store"
    return response


def _find_person(request: HttpRequest, username: str) -> User:
    access.require_admin(request.user)  # type: ignore[arg-type] # the decorator checked the user
    return query.get_account(username)


@action
def person_link(request: Request, username: str) -> HttpResponse:
    """Create a new login link for a user."""
    return _show_link(request, _find_person(request, username))


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
