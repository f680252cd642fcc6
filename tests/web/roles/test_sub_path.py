"""The dashboard below a path of a host: every address that it writes begins with this path."""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import Resolver404, get_script_prefix, resolve, set_script_prefix

from jobs import program
from jobs.models import Deletion, Job
from tests.factories import SEARCH
from tests.people import People, browser_of
from tests.web.searches import searching
from tests.web.test_stranger import PLAIN, ROUTES, Yard, address, body_of, make_yard
from webapp.api.site import api
from webapp.settings.public_address import OWN_PLACES

PREFIX = "/trainyard"
POINTERS = re.compile(r"data-(within|toggle|goto|owns|section-of)|id|for|name|value")
"""Attributes that have places in a spec, which look like addresses."""
ADDRESSES = re.compile(r"https?://testserver(?!/trainyard(?:[/?#\s\"'&<]|$))[^\s\"'<]*")
RELATIVE = re.compile(r'"/(?:api|jobs|ws|models|datasets|code|static|accounts|login)/[^"]*"')
"""Addresses in JSON."""

SOURCES = sorted((program.ROOT / "webapp" / "static" / "js").rglob("*.js"))
PLACES = "|".join(sorted(OWN_PLACES - {"search", "code", "mesh"}))
BARE = re.compile(rf"(?<!address\()(?<!const PLACE = )[\"'`]/(?:{PLACES})(?=[/?\"'`$#])")
"""Addresses in scripts. `/search`, `/code` and `/mesh` are places in a spec, too."""


@pytest.fixture
def below_a_path(settings: Any) -> Iterator[None]:
    settings.FORCE_SCRIPT_NAME = PREFIX
    settings.STATIC_URL = f"{PREFIX}/static/"
    settings.TRAINYARD_API_BURST = 1e9
    before = get_script_prefix()
    set_script_prefix(f"{PREFIX}/")
    forget_addresses()
    yield
    set_script_prefix(before)
    forget_addresses()


def forget_addresses() -> None:
    """Clear the caches of pages: in a process, the path of the public address does not change."""
    api._documents.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("webapp."):
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


@pytest.fixture
def yard(db: None, below_a_path: None) -> Yard:
    return make_yard()


class Addresses(HTMLParser):
    """Collects the attributes of a page that begin with a slash, and not with the path."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and value.startswith("/") and not is_below(value) and is_address(name, value):
                self.found.append(f"<{tag} {name}={value!r}>")


def is_below(value: str) -> bool:
    return re.match(rf"{PREFIX}(/|\?|#|$)", value) is not None


def is_address(name: str, value: str) -> bool:
    if name in ("href", "src", "action", "formaction") or name.startswith("hx-"):
        return True
    if POINTERS.fullmatch(name):
        return False
    try:
        resolve(re.split(r"[?#]", value)[0])
    except Resolver404:
        return False
    return True


def wrong_addresses(response: Any) -> list[str]:
    """Return the addresses in an answer that lead out of the path."""
    found = []
    location = response.headers.get("Location", "")
    if location.startswith("/") and not is_below(location):
        found.append(f"Location: {location}")
    text = body_of(response)
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("text/html"):
        found += Addresses(text).found
    elif "json" in kind and "openapi" not in response.request["PATH_INFO"]:
        found += RELATIVE.findall(text)
    return found + ADDRESSES.findall(text)


def test_all_pages_and_answers_name_only_addresses_below_the_path(yard: Yard) -> None:
    browser, wrong, answered = browser_of(yard.people.administrator), [], 0
    browser.raise_request_exception = False
    for route in [*PLAIN, *(route for route in ROUTES if "<" in route)]:
        path = address(route, yard)
        # A stream has no end.
        if path.endswith("/events") or "serving/releases" in path:
            continue
        response = browser.get(path)
        answered += response.status_code == 200
        wrong += [f"{path}: {found}" for found in wrong_addresses(response)]
    assert not wrong, "\n".join(sorted(set(wrong)))
    assert answered > 90, f"only {answered} pages were read"


def test_pages_of_jobs_name_only_addresses_below_the_path(below_a_path: None, people: People) -> None:
    search = searching(people, [*SEARCH["search"]["space"]])
    browser = browser_of(people.owner)
    tabs = [f"/jobs/{search.pk}?tab={tab}" for tab in ("overview", "trials", "logs", "artifacts", "answer")]
    for path in (*tabs, f"/jobs/{search.pk}/trials/1"):
        response = browser.get(path)
        assert not wrong_addresses(response), path


def test_the_openapi_document_has_the_path(below_a_path: None, db: None) -> None:
    paths = Client().get("/api/v1/openapi.json").json()["paths"]
    assert paths and all(path.startswith(f"{PREFIX}/api/v1/") for path in paths)


def test_a_visitor_is_led_to_the_login_below_the_path(yard: Yard) -> None:
    response = Client().get("/jobs?state=failed")
    assert response["Location"] == f"{PREFIX}/accounts/login/?next={PREFIX}/jobs%3Fstate%3Dfailed"


def test_a_login_link_leads_below_the_path(yard: Yard) -> None:
    response = browser_of(yard.people.administrator).post(
        "/api/v1/users", {"user": "newcomer"}, content_type="application/json"
    )
    assert response.json()["login_link"].startswith(f"http://testserver{PREFIX}/login/")


def test_a_deletion_names_its_way_back_below_the_path(yard: Yard) -> None:
    assert Deletion.objects.exists() and Job.objects.exists()
    items = browser_of(yard.people.administrator).get("/api/v1/deletions").json()["items"]
    assert [item["restore"].startswith(f"{PREFIX}/api/v1/") for item in items] == [True]


@pytest.mark.parametrize("script", SOURCES, ids=lambda path: path.name)
def test_scripts_put_the_path_before_their_addresses(script: Path) -> None:
    found = [line for line in script.read_text().splitlines() if BARE.search(line)]
    assert not found, f"write address(…) of shared/addresses.js: {found}"
