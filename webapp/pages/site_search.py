"""Returns the results for the search dialog (Ctrl-K): actions, pages, settings, objects and help."""

from collections.abc import Iterator
from itertools import chain, islice
from urllib.parse import urlencode

from django.http import HttpResponse, JsonResponse
from django.urls import NoReverseMatch, path, reverse

from jobs.queries.site_search import MAX_PER_KIND, Hit
from jobs.queries.site_search import search_by_text as find
from webapp.pages.action_names import find_actions
from webapp.pages.documents import find_sections, search_documents
from webapp.pages.page_names import NamedPage, find_pages
from webapp.pages.shortcuts import Request, page, url

# Of the query, in characters.
MAX_LENGTH = 100


@page
def search(request: Request) -> HttpResponse:
    """Return the results as `{"items": [{kind, title, hint, url}]}`."""
    text = request.GET.get("q", "")[:MAX_LENGTH]
    pages = find_pages(request, request.user, text)
    actions = [*islice(find_actions(request.user, text), MAX_PER_KIND), *_of_kind("action", pages)]
    hits = [
        NamedPage(hit.title, hit.hint, _address_of_hit(hit), hit.kind) for hit in find(request.user, text)
    ]
    found = [
        *actions[:MAX_PER_KIND],
        *_of_kind("page", pages),
        *_of_kind("setting", pages),
        *(hit for hit in hits if hit.url),
        *_find_help(text),
    ]
    items = [{"kind": one.kind, "title": one.title, "hint": one.hint, "url": one.url} for one in found]
    return JsonResponse({"items": items})


def _of_kind(kind: str, pages: list[NamedPage]) -> list[NamedPage]:
    return [page for page in pages if page.kind == kind][:MAX_PER_KIND]


def _find_help(text: str) -> Iterator[NamedPage]:
    """Yield parts of the help by headings, then by their text; then documents for developers by titles."""
    parts = chain(find_sections(text, for_users=True), search_documents(text, for_users=True))
    # Most of those that the headings find are found by their text again.
    unique = {part.url: NamedPage(part.title, part.hint, part.url, "help") for part in parts}
    yield from islice(unique.values(), MAX_PER_KIND)
    if len(unique) > MAX_PER_KIND:
        yield NamedPage(f"All of the help with “{text.strip()}”", "", url("help", q=text), "help")
    for part in islice(find_sections(text, for_users=False), MAX_PER_KIND):
        yield NamedPage(part.title, "for developers", part.url, "help")


def _address_of_hit(hit: Hit) -> str:
    """Return a hit's address. Some pages take only the last argument."""
    for arguments in (hit.arguments, hit.arguments[-1:]):
        try:
            address = reverse(hit.page, args=arguments)
            return f"{address}?{urlencode({'project': hit.project})}" if hit.project else address
        except NoReverseMatch:
            continue
    return ""


urls = [path("search", search, name="search")]
