"""Decorators, responses, messages and addresses that all pages share.

`@page` is for views that only read, `@form_page` for views that show and accept a form, `@action` for views
that accept POST requests alone, `@start_page` for those that first show the plan of their work. All require a
logged-in user and turn an error of `jobs.errors` into an error page, or into a message for htmx.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate
from urllib.parse import quote, urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import render as django_render
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from jobs import access
from jobs.errors import BadInput, NotFound, TrainyardError
from jobs.models import Project, User
from jobs.spec.problems import Problem
from webapp import scope
from webapp.http_errors import Unavailable
from webapp.json_text import names_with_nul, nul_refused
from webapp.template_context import Context, template_variables
from webapp.templatetags.problem_labels import message_of


class Request(HttpRequest):
    """A logged-in user's request, as decorated views receive it."""

    user: User


type View[**P] = Callable[Concatenate[Request, P], HttpResponse]
type Crumbs = list[tuple[str, str]]
"""The labels and addresses of a breadcrumb; the last address is empty."""
type Tabs = list[tuple[str, str, str]]
"""The key, label and address of each tab."""
type Guarded = Callable[..., HttpResponse]  # accepted by `path`


def page[**P](view: View[P]) -> Guarded:
    """Allow GET requests from logged-in users."""
    return _guard_view(view, ("GET", "HEAD"))


def form_page[**P](view: View[P]) -> Guarded:
    """Allow GET and POST requests from logged-in users."""
    return _guard_view(view, ("GET", "HEAD", "POST"))


def action[**P](view: View[P]) -> Guarded:
    """Allow POST requests from logged-in users, from buttons. A refusal is shown on the button's page."""
    return _guard_view(view, ("POST",))


def start_page[**P](view: View[P]) -> Guarded:
    """Allow GET requests, which show the plan of a button's work, and POST requests, which start it.

    A refused start is shown on the button's page, as that of an `action`.
    """
    return _guard_view(view, ("GET", "HEAD", "POST"), is_button=True)


def _guard_view[**P](view: View[P], methods: tuple[str, ...], *, is_button: bool = False) -> Guarded:
    @wraps(view)
    def respond(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not isinstance(request.user, User) or not request.user.is_active:
            # htmx would insert the login page into the present page, which may have unsent entries.
            if is_partial(request):
                return HttpResponse(status=401, headers={"HX-Reswap": "none", "HX-Trigger": "ty:logout"})
            return redirect_to_login(request.get_full_path())
        if request.method not in methods:
            return HttpResponseNotAllowed(methods)
        refuse = _refuse_start if is_button else _refuse_on_page if methods == ("POST",) else error_response
        try:
            _refuse_nul(request)
            return view(request, *args, **kwargs)  # type: ignore[arg-type] # the user was checked above
        except TrainyardError as error:
            return refuse(request, error)
        except ObjectDoesNotExist:  # deleted between the check of the permission and the change
            return refuse(request, NotFound("This was deleted meanwhile."))

    return respond


def _refuse_nul(request: HttpRequest) -> None:
    # PostgreSQL's columns accept no NUL. No browser sends one unless an address or a script contains it.
    if "\0" in request.path:
        raise NotFound("There is no such page.")
    if named := [*names_with_nul(request.GET), *names_with_nul(request.POST)]:
        raise nul_refused([f"/{name}" for name in named])


def _refuse_on_page(request: HttpRequest, error: TrainyardError) -> HttpResponse:
    """Show the message on the page from which the request came; an error page if that is not known."""
    came_from = referrer(request)
    # Several problems with their fields do not fit in a short notice.
    has_several = isinstance(error, BadInput) and len(error.problems) > 1
    # Clients repeat a request later by its status and its header, which a redirect would hide.
    if is_partial(request) or not came_from or has_several or isinstance(error, Unavailable):
        return error_response(request, error)
    notify(request, message_of(error), level="error", at=_place_of(request, error))
    return redirect(came_from)


def _refuse_start(request: HttpRequest, error: TrainyardError) -> HttpResponse:
    """Refuse a start on its button's page. A script that asks for the dialog gets none and opens the page."""
    if request.method == "POST":
        return _refuse_on_page(request, error)
    if is_partial(request):
        return HttpResponse(status=204)
    is_own_page = referrer(request).partition("?")[0] == request.path
    return error_response(request, error) if is_own_page else _refuse_on_page(request, error)


def _place_of(request: HttpRequest, error: TrainyardError) -> str:
    """Return the address of the refused form, with the name of the field behind `#` if one is wrong."""
    pointer = error.problems[0].pointer if isinstance(error, BadInput) and error.problems else ""
    return f"{request.path}#{quote(pointer.rpartition('/')[2])}"


@dataclass(frozen=True)
class ErrorPage(Context):
    """Variables for `error.html`.

    Attributes:
        error: the error.
        problems: one for each wrong field in the request.
        status: the response's status.
        back: the previous page's local address; empty if unknown.
    """

    error: TrainyardError
    problems: Sequence[Problem]
    status: int
    back: str


@dataclass(frozen=True)
class BareErrorPage(Context):
    """Variables for `error_bare.html`, which has no frame, for visitors who are not logged in."""

    error: TrainyardError
    status: int


def error_response(request: HttpRequest, error: TrainyardError) -> HttpResponse:
    """Show an error page with the error's status, or send its message to htmx."""
    if is_partial(request):
        toast = {"toast": [{"text": message_of(error), "level": "error"}]}
        # htmx 4 also inserts the body of an error response, which this header prevents.
        headers = {"HX-Reswap": "none", "HX-Trigger": json.dumps(toast)} | _retry_after(error)
        return HttpResponse(error.message, status=error.status, headers=headers, content_type="text/plain")
    problems = error.problems if isinstance(error, BadInput) else ()
    context = ErrorPage(error, problems, error.status, referrer(request))
    response = django_render(request, "error.html", template_variables(context), status=error.status)
    for name, value in _retry_after(error).items():
        response[name] = value
    return response


def _retry_after(error: TrainyardError) -> dict[str, str]:
    seconds = error.retry_after if isinstance(error, Unavailable) else None
    return {} if seconds is None else {"Retry-After": str(seconds)}


def problems_of(error: TrainyardError) -> tuple[Problem, ...]:
    """Return an error's problems, each at its field; the message if it has none."""
    problems = tuple(error.problems) if isinstance(error, BadInput) else ()
    return problems or (Problem("", error.message),)


def is_partial(request: HttpRequest) -> bool:
    """Return whether htmx requests a page part."""
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-Request-Type") != "full"


def render_page(
    request: HttpRequest,
    template: str,
    *contexts: Context,
    partial: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render a page, or for htmx only its `partial`, with the pending messages in a header.

    Raises:
        ValueError: two contexts have a variable with the same name.
    """
    variables = template_variables(*contexts)
    scope.show_rows(request, variables.values())
    is_part = bool(partial) and is_partial(request)
    name = f"{template}#{partial}" if is_part else template
    response = django_render(request, name, variables, status=status)
    # A page and its part have one address, and the browser's cache must not show one for the other.
    patch_vary_headers(response, ["HX-Request"])
    if is_part:
        toasts = [
            {"text": str(message), "level": message.level_tag, "undo": message.extra_tags or ""}
            for message in messages.get_messages(request)
        ]
        if toasts:
            response["HX-Trigger"] = json.dumps({"toast": toasts})
    return response


def notify(request: HttpRequest, text: str, *, level: str = "success", undo: str = "", at: str = "") -> None:
    """Show a message on the next page. Errors and warnings stay there until they are dismissed.

    Args:
        request: the present request.
        text: the message.
        level: `success`, `info`, `warning` or `error`.
        undo: the address to which a POST request reverts the change.
        at: the address of a form that was refused, and the name of its wrong field behind `#`.
    """
    messages.add_message(request, getattr(messages, level.upper()), text, extra_tags=undo or at)


def redirect(to: Any, *args: Any, **kwargs: Any) -> HttpResponseRedirect:
    """Redirect after a change (303: the next request is a GET)."""
    response = HttpResponseRedirect(resolve_url(to, *args, **kwargs))
    response.status_code = 303
    return response


def redirect_back(request: HttpRequest, default: str) -> HttpResponseRedirect:
    """Redirect to the form's page (`next`, or the referrer), else to `default`."""
    return redirect(referrer(request) or default)


def referrer(request: HttpRequest) -> str:
    """Return the form page's local address: `next`, or the referrer; empty if neither is local."""
    # Both come from the client: an address of another site would make this an open redirect.
    here = {request.get_host()}
    for candidate in (request.POST.get("next", ""), request.headers.get("Referer", "")):
        if candidate and url_has_allowed_host_and_scheme(candidate, here, require_https=request.is_secure()):
            parts = urlsplit(candidate)
            return parts.path + (f"?{parts.query}" if parts.query else "")
    return ""


def crumbs(*pairs: tuple[str, str] | str) -> Crumbs:
    """Return a breadcrumb. A label without an address names the page itself."""
    return [(pair, "") if isinstance(pair, str) else pair for pair in pairs]


def url(name: str, /, *args: Any, **query: Any) -> str:
    """Return a named page's address with query parameters that are not empty."""
    return reverse(name, args=args, query={k: v for k, v in query.items() if v not in (None, "")} or None)


def writable_projects(user: User) -> QuerySet[Project]:
    """Return the projects in which the user may create data sets, experiments and models, by name."""
    return access.projects_of(user, access.Action.WRITE).order_by("name")


def valid_choice[T: str](value: str | None, allowed: Iterable[T], default: T) -> T:
    """Return `value`, such as a tab or a filter in the query string, if it is allowed, else `default`."""
    return next((item for item in allowed if item == value), default)
