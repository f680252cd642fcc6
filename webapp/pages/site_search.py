"""Returns the results for the search dialog (Ctrl-K)."""

from itertools import islice
from urllib.parse import urlencode

from django.http import HttpResponse, JsonResponse
from django.urls import NoReverseMatch, path, reverse

from jobs.queries.site_search import MAX_PER_KIND, Hit
from jobs.queries.site_search import search_by_text as find
from webapp.pages.docs import find_sections
from webapp.pages.page_names import find_pages
from webapp.pages.shortcuts import Request, page

# Of the query, in characters.
MAX_LENGTH = 100


@page
def search(request: Request) -> HttpResponse:
    """Return the results as `{"items": [{kind, title, hint, url}]}`."""
    text = request.GET.get("q", "")[:MAX_LENGTH]
    pages = find_pages(request, request.user, text)[:MAX_PER_KIND]
    hits = [(hit.kind, hit.title, hit.hint, _address_of_hit(hit)) for hit in find(request.user, text)]
    sections = islice(find_sections(text), MAX_PER_KIND)
    found = [*(("page", *each) for each in pages), *hits, *(("help", *each) for each in sections)]
    return JsonResponse(
        {
            "items": [
                {"kind": kind, "title": title, "hint": hint, "url": address}
                for kind, title, hint, address in found
                if address
            ]
        }
    )


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
