"""Invites people from the page of a project, and makes new links for its members."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.people.invitations import add_or_invite
from jobs.actions.people.people import find_person
from jobs.errors import BadInput, Conflict, NotFound
from jobs.models import Role
from webapp.forms.people.people import MemberForm
from webapp.pages.people.logins import keep_secret, link_of, new_link
from webapp.pages.people.projects import settings_page
from webapp.pages.shortcuts import Request, form_page, notify, redirect


@form_page
def invite_member(request: Request, project: str) -> HttpResponse:
    """Add a person to the project. A new name gets an account and a login link, which is shown once."""
    row = access.get_project(request.user, project, Action.MANAGE)
    # A reload of the page with the link or of the invalid form, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return settings_page(request, row, status=422, member_form=form)
    entries = form.cleaned_data
    try:
        invitation = add_or_invite(row, entries["user"], Role(entries["role"]), by=request.user)
    except (BadInput, Conflict, NotFound) as error:
        problems = error.problems if isinstance(error, BadInput) else ()
        form.add_error("user", problems[0].message if problems else error.message)
        return settings_page(request, row, status=422, member_form=form)
    if (made := link_of(request, invitation)) is not None:
        return keep_secret(settings_page(request, row, made=made))
    notify(request, f"{invitation.person.username} is {entries['role']} of {row.name}.")
    return redirect("project_settings", row.slug)


@form_page
def member_link(request: Request, project: str, username: str) -> HttpResponse:
    """Make a new login link for a member, for administrators of the installation."""
    row = access.get_project(request.user, project)
    access.require_admin(request.user)
    if request.method != "POST":
        return redirect("project_settings", row.slug)
    return keep_secret(settings_page(request, row, made=new_link(request, find_person(username))))


urls = [
    path("p/<slug:project>/invite", invite_member, name="project_invite"),
    path("p/<slug:project>/members/<str:username>/link", member_link, name="project_member_link"),
]
