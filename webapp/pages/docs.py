"""Shows the Markdown documents in docs/ as help pages: a guide for users, and pages for developers."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.safestring import SafeString

from jobs.errors import NotFound
from webapp.pages import documents
from webapp.pages.documents import FOR_DEVELOPERS, FOR_USERS, Section
from webapp.pages.shortcuts import Crumbs, Request, crumbs, page, render_page
from webapp.template_context import Context

RENAMED = {
    "decisions/0005-tests-on-all-cores": "decisions/0005-tests-in-two-tiers",
    "guide/8-isolation": "guide/12-isolation",
    "guide/9-fine-tuning": "guide/11-fine-tuning",
}
"""Earlier names of documents, whose addresses lead to the present ones."""

MAX_QUERY = 100
"""The most characters of a query."""

MAX_RESULTS = 40


@dataclass(frozen=True)
class DocumentsPage(Context):
    """The documents grouped by subject, or the parts that a search found.

    Attributes:
        for_users: whether it is the help for users, or the page for developers.
        groups: the title of each group with the names and titles of its documents.
        text: the query; empty for the list.
        results: the parts that fit the query, at most `MAX_RESULTS`.
        count: how many there are.
        elsewhere: how many the other of the two pages finds.
        crumbs: the breadcrumb of the page for developers.
    """

    for_users: bool
    groups: list[tuple[str, list[tuple[str, str]]]]
    text: str
    results: list[Section]
    count: int
    elsewhere: int
    crumbs: Crumbs


@page
def docs(request: Request) -> HttpResponse:
    """List the help for users, or with `?q=` the parts of it that fit a query."""
    return _documents_page(request, for_users=True)


@page
def for_developers(request: Request) -> HttpResponse:
    """List the documents about the program itself, or with `?q=` the parts that fit a query."""
    return _documents_page(request, for_users=False)


def _documents_page(request: Request, *, for_users: bool) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:MAX_QUERY]
    results = documents.search_documents(text, for_users=for_users)
    files = documents.list_documents()
    groups = [
        (title, [(name, documents.title_of(files[name])) for name in names])
        for title, names in documents.grouped_names(FOR_USERS if for_users else FOR_DEVELOPERS)
    ]
    context = DocumentsPage(
        for_users=for_users,
        groups=[] if text else groups,
        text=text,
        results=results[:MAX_RESULTS],
        count=len(results),
        elsewhere=len(documents.search_documents(text, for_users=not for_users)),
        crumbs=[] if for_users else crumbs(("Help", reverse("help")), "For developers"),
    )
    return render_page(request, "docs/list.html", context)


@dataclass(frozen=True)
class DocumentPage(Context):
    """One document."""

    title: str
    body: SafeString
    crumbs: Crumbs


@page
def document(request: Request, name: str) -> HttpResponse:
    """Show one document."""
    name = name.removesuffix(".md")
    if name in RENAMED:
        return redirect("help_page", RENAMED[name], permanent=True)
    file = documents.list_documents().get(name)
    if file is None:
        raise NotFound("There is no such document.")
    title = documents.title_of(file)
    trail = [("Help", reverse("help"))]
    if not documents.is_for_users(name):
        trail.append(("For developers", reverse("help_developers")))
    context = DocumentPage(title=title, body=documents.html_of(file), crumbs=crumbs(*trail, title))
    return render_page(request, "docs/one.html", context)


urls = [
    path("docs", docs, name="help"),
    path("docs/developers", for_developers, name="help_developers"),
    path("docs/<path:name>", document, name="help_page"),
]
