"""Lists, creates and revokes API tokens: the user's own ones, or all for administrators."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import path

from jobs import clock
from jobs.actions.people import tokens as actions
from jobs.errors import BadInput, Forbidden
from jobs.models import ApiToken
from jobs.public_path import beside_public_path
from jobs.queries.people import tokens as query
from webapp.forms.people.people import TokenForm
from webapp.pages.shortcuts import Request, action, form_page, notify, redirect, render_page
from webapp.template_context import Context


@dataclass(frozen=True)
class TokensPage(Context):
    """The tokens that the user may see, and the form for a new one."""

    rows: QuerySet[ApiToken]
    form: TokenForm
    now: datetime


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
    context = TokensPage(rows=query.visible_tokens(request.user), form=form, now=clock.estimate())
    return render_page(request, "people/tokens/list.html", context, status=status)


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
