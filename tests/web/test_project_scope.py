"""The project switcher is the scope of lists; pages of other projects name theirs."""

from dataclasses import dataclass

import pytest
from django.test import Client

from jobs.models import Endpoint, Project
from tests.factories import (
    SEARCH,
    make_code,
    make_dataset,
    make_experiment,
    make_job,
    make_model,
    make_project,
    make_trials,
)
from tests.markup import one_line
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db

LISTS = ("/", "/jobs", "/models", "/endpoints", "/datasets", "/code", "/queue")


@dataclass(frozen=True)
class Rooms:
    """The owner's two projects; each has one row of each kind, named after the project."""

    browser: Client
    yard: Project
    vision: Project
    pages: list[str]  # of things in `vision`


@pytest.fixture
def rooms(people: People) -> Rooms:
    vision = make_project("vision", owner=people.owner, name="Vision")
    pages = []
    for project in (people.project, vision):
        name, owner = f"thing-of-{project.slug}", people.owner
        experiment = make_experiment(name, project=project, by=owner, spec=SEARCH)
        job = make_job(by=owner, experiment=experiment, state="running", title=name)
        make_trials(job, 1)
        make_job(by=owner, experiment=experiment, state="queued", title=name)
        model = make_model(name, project=project, by=owner)
        Endpoint.objects.filter(model=model).update(production=model.versions.get())
        make_dataset(name, project=project, by=owner)
        code = make_code(name, project=project, by=owner)
        pages = [
            *(f"/jobs/{job.pk}", f"/jobs/{job.pk}/trials/1", f"/models/{name}", f"/models/{name}/versions/1"),
            *(f"/endpoints/{name}", f"/p/{project.slug}/experiments", f"/code/{code.digest}"),
            *(f"/p/{project.slug}/experiments/{experiment.pk}", f"/datasets/{name}/versions/1"),
        ]
    return Rooms(browser_of(people.owner), people.project, vision, pages)


def shown(browser: Client, address: str) -> set[str]:
    """Return the projects whose rows a page shows."""
    page = one_line(browser.get(address)).split("<main")[1]
    return {slug for slug in ("yard", "vision") if f"thing-of-{slug}" in page}


def choose(browser: Client, project: str, page: str = "/jobs", **entries: str) -> str:
    """Choose in the switcher; return the address to which it leads."""
    return browser.post("/projects/choose", {"project": project, "next": page, **entries})["Location"]


@pytest.mark.parametrize("address", LISTS)
def test_every_list_obeys_the_switcher(rooms: Rooms, address: str) -> None:
    assert shown(rooms.browser, address) == {"yard", "vision"}
    choose(rooms.browser, "vision")
    assert shown(rooms.browser, address) == {"vision"}
    choose(rooms.browser, "")
    assert shown(rooms.browser, address) == {"yard", "vision"}


@pytest.mark.parametrize("address", LISTS)
def test_the_address_of_a_list_may_name_its_scope(rooms: Rooms, address: str) -> None:
    choose(rooms.browser, "vision")
    assert shown(rooms.browser, f"{address}?project=yard") == {"yard"}
    assert shown(rooms.browser, f"{address}?project=") == {"yard", "vision"}
    assert rooms.browser.get(f"{address}?project=elsewhere").status_code == 404


def test_a_part_of_a_page_has_the_scope_of_the_page(rooms: Rooms) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/queue?project=yard"}
    part = one_line(rooms.browser.get("/queue", headers=headers))
    assert "thing-of-yard" in part and "thing-of-vision" not in part


def test_the_navigation_names_the_scope_in_its_addresses(rooms: Rooms) -> None:
    choose(rooms.browser, "vision")
    page = one_line(rooms.browser.get("/"))
    assert 'aria-label="Project: Vision"' in page
    assert 'href="/jobs?project=vision"' in page
    choose(rooms.browser, "")
    page = one_line(rooms.browser.get("/"))
    assert 'aria-label="Project: All projects"' in page
    assert 'href="/jobs"' in page


def test_a_page_of_another_project_says_so_and_offers_the_switch(rooms: Rooms) -> None:
    choose(rooms.browser, "yard")
    for address in rooms.pages:
        page = one_line(rooms.browser.get(address, follow=True))
        assert "This page belongs to the project <strong>Vision</strong>" in page, address
    assert choose(rooms.browser, "vision", rooms.pages[0], stay="1") == rooms.pages[0]
    for address in rooms.pages:
        assert "This page belongs" not in one_line(rooms.browser.get(address, follow=True)), address


def test_with_all_projects_no_page_belongs_to_another(rooms: Rooms) -> None:
    for address in rooms.pages:
        assert "This page belongs" not in one_line(rooms.browser.get(address, follow=True)), address


@pytest.mark.parametrize(
    ("page", "leads_to"),
    [
        ("/jobs?state=running&project=yard&cursor=x", "/jobs?state=running"),
        ("/models/thing-of-yard/versions/1", "/models"),
        ("/p/yard/experiments", "/p/vision/experiments"),
        ("/docs/guide/1-first-search", "/"),
        ("/", "/"),
        ("https://elsewhere.example/", "/"),
    ],
)
def test_the_switcher_leads_to_the_same_list_of_the_new_project(
    rooms: Rooms, page: str, leads_to: str
) -> None:
    assert choose(rooms.browser, "vision", page) == leads_to


def test_a_project_of_others_cannot_be_chosen(rooms: Rooms) -> None:
    assert rooms.browser.post("/projects/choose", {"project": "elsewhere"}).status_code == 404
    assert shown(rooms.browser, "/jobs") == {"yard", "vision"}


def test_rest_does_not_know_the_scope(rooms: Rooms) -> None:
    choose(rooms.browser, "vision")
    jobs = rooms.browser.get("/api/v1/jobs").json()["items"]
    assert {job["project"] for job in jobs} == {"yard", "vision"}
