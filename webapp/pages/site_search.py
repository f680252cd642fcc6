"""Returns the results for the search dialog (Ctrl-K)."""

from urllib.parse import urlencode

from django.http import HttpResponse, JsonResponse
from django.urls import NoReverseMatch, path, reverse

from jobs.queries.site_search import Hit
from jobs.queries.site_search import search_by_text as find
from webapp.pages.shortcuts import Request, page

# Of the query, in characters.
MAX_LENGTH = 100


@page
def search(request: Request) -> HttpResponse:
    """Return the results as `{"items": [{kind, title, hint, url}]}`."""
    hits = find(request.user, request.GET.get("q", "")[:MAX_LENGTH])
    items = [
        {"kind": hit.kind, "title": hit.title, "hint": hit.hint, "url": _address_of_hit(hit)} for hit in hits
    ]
    return JsonResponse({"items": [item for item in items if item["url"]]})


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
