"""Lists, creates and revokes API tokens: the user's own ones, or all for administrators."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import path

from jobs import clock
from jobs.actions.people import tokens as actions
from jobs.errors import BadInput, Forbidden
from jobs.models import ApiToken
from jobs.public_path import beside_public_path
from jobs.queries import paging
from jobs.queries.paging import Page
from jobs.queries.people import tokens as query
from webapp.forms.people.people import TokenForm
from webapp.pages.shortcuts import Request, action, form_page, notify, redirect, render_page, valid_choice
from webapp.template_context import Context


@dataclass(frozen=True)
class TokensPage(Context):
    """The tokens that the user may see, the list's filter and order, and the form for a new one."""

    page: Page[ApiToken]
    chosen: query.TokenFilter
    order: str
    scopes: tuple[str, ...]
    states: tuple[str, ...]
    unused: dict[str, str]
    orders: dict[str, str]
    form: TokenForm
    now: datetime


NEWEST_FIRST = "-created"
ORDERS = {
    "used": "longest unused first",
    "-used": "last used first",
    "owner": "by owner",
    "name": "by name",
    "ends": "next to end first",
}
"""The orders of the list beside the newest first, in words."""
UNUSED_DAYS = {"30": "30 days", "90": "90 days", "365": "a year"}
STATES = ("valid", "expired", "stopped")
LISTED_SCOPES = (*actions.OFFERED_SCOPES, actions.SERVER_SCOPE)


@form_page
def tokens(request: Request) -> HttpResponse:
    """List tokens, or create one, which is shown once."""
    form = TokenForm(request.POST or None, is_admin=request.user.is_superuser)
    if request.method == "POST" and form.is_valid():
        try:
            return _create_token(request, form)
        except BadInput as error:
            form.add_problems(error)
        except Forbidden as error:
            form.add_error("scopes", error.message)
    status = 422 if request.method == "POST" else 200
    chosen = _read_filter(request)
    order = valid_choice(request.GET.get("sort"), ORDERS, NEWEST_FIRST)
    column = query.SORTS[order.removeprefix("-")]
    rows = paging.page_of(
        query.filter_tokens(query.visible_tokens(request.user), chosen),
        cursor=request.GET.get("cursor"),
        order=f"-{column}" if order.startswith("-") else column,
    )
    context = TokensPage(
        page=rows,
        chosen=chosen,
        order="" if order == NEWEST_FIRST else order,
        scopes=LISTED_SCOPES,
        states=STATES,
        unused=UNUSED_DAYS,
        orders=ORDERS,
        form=form,
        now=clock.estimate(),
    )
    return render_page(request, "people/tokens/list.html", context, status=status)


def _read_filter(request: Request) -> query.TokenFilter:
    state: Any = valid_choice(request.GET.get("state"), STATES, "")
    return query.TokenFilter(
        owner=request.GET.get("owner", "").strip(),
        scope=valid_choice(request.GET.get("scope"), LISTED_SCOPES, ""),
        state=state,
        unused_days=int(valid_choice(request.GET.get("unused"), UNUSED_DAYS, "0")),
    )


@dataclass(frozen=True)
class TokenMade(Context):
    """A new token with its secret, which is shown once."""

    token: ApiToken
    raw: str
    address: str


def _create_token(request: Request, form: TokenForm) -> HttpResponse:
    entries = form.cleaned_data
    end = clock.estimate() + timedelta(days=int(entries["days"])) if entries["days"] else None
    token, raw = actions.create(
        request.user,
        by=request.user,
        scopes=entries["scopes"],
        name=entries["name"],
        expires=end,
        endpoints=entries["endpoints"],
    )
    address = request.build_absolute_uri(beside_public_path("/api/v1/me"))
    response = render_page(
        request, "people/tokens/made.html", TokenMade(token=token, raw=raw, address=address)
    )
    # The token is shown once: it must not stay in a cache.
    response["Cache-Control"] = "no-store"
    return response


@action
def token_revoke(request: Request, token_id: int) -> HttpResponse:
    """Revoke a token."""
    token = query.get_token(token_id)
    actions.revoke(token, by=request.user)
    notify(request, f"Token {token.name or token.prefix} no longer works.")
    return redirect("tokens")


urls = [
    path("tokens", tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", token_revoke, name="token_revoke"),
]
