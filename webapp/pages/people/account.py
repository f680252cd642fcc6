"""Shows the current user's account, and logs users in by one-time links."""

from dataclasses import dataclass

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from jobs.actions.people import logins
from jobs.actions.people import people as actions
from jobs.errors import NotFound
from jobs.models import Membership, User
from jobs.queries.people import sessions
from jobs.queries.people.people import issuers_of, memberships_of
from jobs.queries.people.sessions import SessionView
from webapp.accounts.forms import LinkForm
from webapp.accounts.login import address_of, by_link
from webapp.pages.shortcuts import (
    BareErrorPage,
    Request,
    action,
    notify,
    page,
    redirect,
    render_page,
)
from webapp.template_context import Context


@dataclass(frozen=True)
class AccountPage(Context):
    """The current user's projects, login and sessions."""

    memberships: QuerySet[Membership]
    has_password: bool
    issuers: list[User]
    has_second_factor: bool
    sessions: list[SessionView]


@page
def account(request: Request) -> HttpResponse:
    """Show the current user's projects, roles, password, second factor and sessions."""
    context = AccountPage(
        memberships=memberships_of(request.user),
        has_password=request.user.has_usable_password(),
        issuers=issuers_of(request.user),
        has_second_factor=is_mfa_enabled(request.user, [Authenticator.Type.TOTP]),
        sessions=sessions.open_sessions(request.user, request.session.session_key),
    )
    return render_page(request, "people/account.html", context)


@action
def end_sessions(request: Request) -> HttpResponse:
    """End all sessions of the current user, this one included."""
    actions.end_sessions(request.user)
    logins.record_login_change(request.user, "end_sessions")
    request.session.flush()
    return redirect("account_login")


@require_safe
@never_cache
def session(request: HttpRequest) -> HttpResponse:
    """Return the session's user and CSRF token; both are null without a login.

    A page asks before it sends a form. A login in another tab may have replaced the token or the user.
    """
    if not isinstance(request.user, User) or not request.user.is_active:
        return JsonResponse({"user": None, "csrf": None})
    return JsonResponse({"user": request.user.username, "csrf": get_token(request)})


@dataclass(frozen=True)
class LoginLinkPage(Context):
    """The form that uses a one-time link, and the user whom it logs in."""

    person: User
    form: LinkForm


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def login_link(request: HttpRequest, secret: str) -> HttpResponse:
    """Log a user in by a one-time link.

    A GET request changes nothing, because mail scanners and previews open links too; the button sends a
    POST request. A password is still required if the user has one, unless the operator made the link; so is
    a second factor. `?next=` is the page to open then.
    """
    try:
        link = actions.find_login_link(secret)
        form = LinkForm(request.POST if request.method == "POST" else None, link=link)
        if not form.is_valid():
            status = 422 if form.is_bound else 200
            context = LoginLinkPage(person=link.user, form=form)
            return render_page(request, "people/login_link.html", context, status=status)
        link = actions.use_login_link(secret)
    except NotFound as error:
        spent = actions.spent_login_link(secret) if request.method == "POST" else None
        if spent is not None:
            logins.record_refused_link(spent, address=address_of(request))
        return render_page(
            request, "error_bare.html", BareErrorPage(error, error.status), status=error.status
        )
    response = by_link(request, link, _page_after_link(request, link.user))
    # The address of this page contains the secret.
    response["Referrer-Policy"] = "no-referrer"
    return response


def _page_after_link(request: HttpRequest, user: User) -> str:
    address = request.GET.get("next", "")
    # The address comes from the client: one of another site would make this an open redirect.
    if url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure()):
        return address
    if not user.has_usable_password():
        notify(request, "Set a password here to log in without a link.", level="info")
        return reverse("account")
    return reverse("home")


urls = [
    path("account/", account, name="account"),
    path("account/end-sessions", end_sessions, name="account_end_sessions"),
    path("account/session", session, name="account_session"),
    path("login/<str:secret>", login_link, name="login_link"),
]
