"""The list of jobs: each filter and order is in its address, and unknown values list nothing."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.models import Job
from tests.factories import SEARCH, SPEC, make_experiment, make_job
from tests.markup import one_line
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


def listed(browser: Client, **query: Any) -> list[int]:
    """Return the numbers of the jobs in the list, in its order."""
    return [
        int(key) for key in re.findall(r'name="job" value="(\d+)"', one_line(browser.get("/jobs", query)))
    ]


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.owner)


@pytest.fixture
def jobs(people: People) -> dict[str, Job]:
    """A search on digits, one on wine with own code, and a finished training with a step."""
    own = {"kind": "code", "digest": "a" * 64, "entry": "build_model"}
    specs: dict[str, Any] = {
        "digits": SEARCH,
        "wine": {**SEARCH, "data": {"dataset": "wine", "dataset_version": 2}, "model": own},
        "ended": SPEC,
    }
    states = {"digits": "running", "wine": "queued", "ended": "completed"}
    rows = {
        name: make_job(
            by=people.member if name == "wine" else people.owner,
            experiment=make_experiment(name, project=people.project, by=people.owner, spec=spec),
            state=states[name],
            kind="train" if name == "ended" else "search",
            title=f"{name} by hand",
        )
        for name, spec in specs.items()
    }
    step = make_job(
        by=people.owner,
        project=people.project,
        kind="quantize",
        title="Quantize",
        state="completed",
        parent=rows["ended"],
    )
    return rows | {"step": step}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["ended", "wine", "digits"]),
        ({"q": "wine hand"}, ["wine"]),
        ({"state": "running"}, ["digits"]),
        ({"state": "unfinished"}, ["wine", "digits"]),
        ({"state": "finished"}, ["ended"]),
        ({"kind": "search"}, ["wine", "digits"]),
        ({"kind": "quantize"}, ["step"]),
        ({"dataset": "wine"}, ["wine"]),
        ({"model": "mlp"}, ["ended", "digits"]),
        ({"model": "build_model"}, ["wine"]),
        ({"who": "member"}, ["wine"]),
        ({"dataset": "digits", "state": "unfinished"}, ["digits"]),
        ({"sort": "name"}, ["digits", "ended", "wine"]),
        ({"sort": "-name"}, ["wine", "ended", "digits"]),
        ({"sort": "created"}, ["digits", "wine", "ended"]),
        ({"sort": "state"}, ["ended", "wine", "digits"]),
    ],
)
def test_a_view_of_the_list_is_its_address(
    browser: Client, jobs: dict[str, Job], query: dict[str, str], names: list[str]
) -> None:
    assert listed(browser, **query) == [jobs[name].pk for name in names]


def test_a_job_is_found_by_its_number(browser: Client, jobs: dict[str, Job]) -> None:
    assert listed(browser, q=f"#{jobs['wine'].pk}") == [jobs["wine"].pk]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"state": "flying"}, "There is no state “flying”."),
        ({"kind": "flight"}, "There is no kind “flight”."),
        ({"dataset": "no-such-data"}, "Change or clear the filters."),
    ],
)
def test_a_filter_that_fits_nothing_lists_nothing(
    browser: Client, jobs: dict[str, Job], query: dict[str, str], sentence: str
) -> None:
    assert listed(browser, **query) == []
    assert sentence in one_line(browser.get("/jobs", query))


def test_a_row_names_the_data_set_and_the_model(browser: Client, jobs: dict[str, Job]) -> None:
    page = one_line(browser.get("/jobs", {"q": "wine"}))
    row = page.split("<tbody>")[1]
    assert re.search(r'href="\?q=wine&amp;dataset=wine"[^>]*>wine</a> <span[^>]*>v2<', row)
    assert ">build_model</a>" in row


def test_the_filters_and_the_order_stay_in_the_links_of_the_list(
    browser: Client, jobs: dict[str, Job]
) -> None:
    page = one_line(browser.get("/jobs", {"state": "unfinished", "sort": "-name"}))
    assert 'href="?state=unfinished&amp;sort=name"' in page
    assert '<input type="hidden" name="sort" value="-name">' in page


def test_selected_jobs_get_commands_only_from_those_who_may_write(
    people: People, jobs: dict[str, Job]
) -> None:
    bar = one_line(browser_of(people.member).get("/jobs")).split('class="ty-selection"')[1]
    assert re.findall(r'name="what" value="(\w+)"', bar) == [
        *("pause", "resume", "finish", "retry", "stop", "kill")
    ]
    page = one_line(browser_of(people.viewer).get("/jobs"))
    assert 'id="selection"' in page and 'name="what"' not in page


def test_the_number_of_statements_does_not_depend_on_the_jobs(
    people: People, browser: Client, jobs: dict[str, Job]
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            browser.get("/jobs", {"kind": "train", "dataset": "digits", "q": "hand"})
        return len(queries)

    experiment = make_experiment(project=people.project, by=people.owner, spec=SPEC)
    few = statements()
    for _ in range(5):
        make_job(by=people.owner, experiment=experiment, kind="train", state="completed", title="by hand")
    assert statements() == few
