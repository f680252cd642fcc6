"""No page has an id twice: labels, anchors and scripts would find the wrong element."""

from collections import Counter
from html.parser import HTMLParser

import pytest
from django.test import Client

from jobs.models import Job
from tests.factories import SEARCH
from tests.people import People, browser_of
from tests.web.searches import searching
from tests.web.test_stranger import PLAIN, ROUTES, address, body_of, make_yard

pytestmark = pytest.mark.django_db


class Ids(HTMLParser):
    """Collects the ids of a page's elements; those in a `<template>` are not in the page yet."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.templates = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.templates += tag == "template"
        if not self.templates:
            self.found += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        self.templates -= tag == "template"


def repeated_ids(browser: Client, path: str) -> list[str]:
    """Return the ids that a page has more than once; none for an answer that is no page."""
    response = browser.get(path)
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return []
    return [name for name, count in Counter(Ids(body_of(response)).found).items() if count > 1]


def test_no_page_has_an_id_twice() -> None:
    yard = make_yard()
    browser, wrong = browser_of(yard.people.administrator), []
    browser.raise_request_exception = False
    for route in [*PLAIN, *(route for route in ROUTES if "<" in route)]:
        path = address(route, yard)
        if path.startswith("/api/"):
            continue
        wrong += [f"{path}: {name}" for name in repeated_ids(browser, path)]
    assert not wrong, "\n".join(sorted(set(wrong)))


@pytest.fixture
def search(people: People) -> Job:
    return searching(people, [*SEARCH["search"]["space"]])


@pytest.mark.parametrize("tab", ["overview", "trials", "charts", "logs", "system", "spec"])
def test_no_tab_of_a_search_has_an_id_twice(people: People, search: Job, tab: str) -> None:
    assert repeated_ids(browser_of(people.owner), f"/jobs/{search.pk}?tab={tab}") == []


def test_the_form_of_an_experiment_has_no_id_twice(people: People, search: Job) -> None:
    path = f"/p/{people.project.slug}/experiments/{search.experiment_id}/edit"
    page = body_of(browser_of(people.owner).get(path))
    assert 'id="search"' in page  # the section of the form
    assert repeated_ids(browser_of(people.owner), path) == []
