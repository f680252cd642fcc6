"""Two versions of an experiment: the second save shows the differences, and either can be kept."""

import copy
import json
import re
from typing import Any

import pytest
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.models import Experiment, Job, Membership
from tests.markup import text_of
from tests.world import World
from webapp.forms.experiments.experiment import conflict

HOME = "/p/yard/experiments"


def edit(spec: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Return a copy with some values replaced: `fit__epochs=7`."""
    changed_spec = copy.deepcopy(spec)
    for path, value in parts.items():
        *above, last = path.split("__")
        here = changed_spec
        for name in above:
            here = here.setdefault(name, {})
        here[last] = value
    return changed_spec


def version(spec: Any, **about: str) -> dict[str, Any]:
    return conflict.form_document(**{"name": "first", "tags": "", "notes": "", **about}, spec=spec)


@pytest.mark.parametrize("saved", [{}, {"fit": None}, {"fit": {"epochs": 5}}, [], [3], None, "text"])
@pytest.mark.parametrize("mine", [{"fit": {"epochs": 3}}, {"search": {"space": [1, "a"]}}])
def test_a_draft_may_be_any_json(saved: Any, mine: Any) -> None:
    assert conflict.list_changes(version(saved), version(mine))


def test_fields_beside_the_spec_are_compared_too() -> None:
    spec = {"fit": {"epochs": 5}}
    saved = version(spec, notes="one\r\ntwo", tags="a,b")
    mine = version(edit(spec, fit__epochs=7), notes="one\ntwo", tags=" b ")
    assert [(one.path, one.before, one.after) for one in conflict.list_changes(saved, mine)] == [
        ("tags", "a, b", "b"),
        ("fit.epochs", 5, 7),
    ]


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


@pytest.fixture
def experiment(world: World, searching: dict[str, Any]) -> Experiment:
    Membership.objects.filter(user=world.viewer).update(role="member")
    return experiments.create(world.project, name="first", draft=searching, tags=["fast"], by=world.owner)


def post(browser: Client, experiment: Experiment, spec: Any, do: str = "draft", **fields: Any) -> Any:
    form = {"name": "first", "tags": "fast", "notes": "", "spec": json.dumps(spec), "do": do, **fields}
    return browser.post(f"{HOME}/{experiment.pk}/edit", form)


def refused(world: World, experiment: Experiment, spec: dict[str, Any], **fields: Any) -> tuple[Client, Any]:
    """Save a version, then another by a person who opened the form before; return their page."""
    theirs = edit(spec, fit__epochs=9, fit__batch_size=8)
    assert post(world.client(world.viewer), experiment, theirs, version="1", name="theirs").status_code == 303
    browser = world.client(world.owner)
    return browser, post(browser, experiment, edit(spec, fit__epochs=7), version="1", **fields)


def choose(browser: Client, page: Any, do: str) -> Any:
    """Press a button of the page as a browser would."""
    experiment = page.context["experiment"]
    fields = {**page.context["entries"], "overwrites": str(experiment.version), "do": do}
    return browser.post(f"{HOME}/{experiment.pk}/edit", fields)


def test_the_second_save_compares_both_versions_and_names_who_saved_the_other(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    _, page = refused(world, experiment, searching)
    assert page.status_code == 409
    text = text_of(page)
    assert "Your entries are not saved yet" in text
    assert re.search(r"vera saved another version .{1,20}, after you had opened the form", text)
    changes = {one.path: (one.before, one.after) for one in page.context["changes"]}
    assert changes == {
        "name": ("theirs", "first"),
        "fit.epochs": (9, 7),
        "fit.batch_size": (8, searching["fit"].get("batch_size")),
    }
    assert "(3 values in the column Saved). The replaced draft is not kept." in text
    assert Experiment.objects.get().name == "theirs", "nothing is overwritten before it is asked for"


def test_the_own_version_replaces_the_saved_one_when_it_is_asked_for(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = refused(world, experiment, searching)
    assert choose(browser, page, "draft").status_code == 303
    experiment.refresh_from_db()
    assert (experiment.name, experiment.draft) == ("first", edit(searching, fit__epochs=7))
    page = browser.get(f"{HOME}/{experiment.pk}/edit")
    assert "It replaced the version that was saved meanwhile." in page.content.decode()


def test_the_own_version_can_be_edited_further_and_is_compared_again(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = refused(world, experiment, searching)
    form = choose(browser, page, "edit")
    assert form.status_code == 200
    assert "data-unsaved" in form.content.decode()
    entries = form.context["entries"]
    assert json.loads(entries["spec"]) == edit(searching, fit__epochs=7)
    again = post(browser, experiment, json.loads(entries["spec"]), version=entries["version"])
    assert again.status_code == 409


def test_the_saved_version_is_loaded_only_by_a_button_of_its_own(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = refused(world, experiment, searching)
    assert "Your entries are lost then: they are stored nowhere." in text_of(page)
    loaded = choose(browser, page, "reload")
    assert (loaded.status_code, loaded["Location"]) == (303, f"{HOME}/{experiment.pk}/edit")
    entries = browser.get(loaded["Location"]).context["entries"]
    assert (entries["name"], json.loads(entries["spec"])["fit"]["epochs"]) == ("theirs", 9)


def test_a_third_version_is_compared_before_it_is_replaced(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = refused(world, experiment, searching)
    third = edit(searching, fit__epochs=11)
    assert post(world.client(world.viewer), experiment, third, version="2").status_code == 303
    again = choose(browser, page, "draft")
    assert again.status_code == 409
    assert [(one.path, one.before, one.after) for one in again.context["changes"]] == [("fit.epochs", 11, 7)]
    assert choose(browser, again, "draft").status_code == 303


def test_a_submission_over_another_version_asks_before_it_queues(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = refused(world, experiment, searching, do="submit")
    assert (page.status_code, Job.objects.filter(kind="search").exists()) == (409, False)
    assert "Overwrite and submit" in text_of(page)
    done = choose(browser, page, "submit")
    assert (done.status_code, Job.objects.filter(kind="search").count()) == (303, 1)


def test_entries_that_are_not_valid_are_shown_in_the_form_again(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    _, page = refused(world, experiment, edit(searching, fit__shuffle="maybe"), do="submit")
    assert page.status_code == 422
    assert "data-unsaved" in page.content.decode()


def test_the_same_version_saved_twice_needs_no_choice(
    browser: Client, experiment: Experiment, searching: dict[str, Any]
) -> None:
    for _ in range(2):
        assert post(browser, experiment, edit(searching, fit__epochs=7), version="1").status_code == 303


def test_another_order_of_the_search_space_is_not_overwritten_without_a_question(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    space = [*searching["search"]["space"], {"name": "more", "kind": "int", "min": 1, "max": 2}]
    first, second = (edit(searching, search__space=rows) for rows in (space, space[::-1]))
    assert post(world.client(world.viewer), experiment, first, version="1").status_code == 303
    page = post(world.client(world.owner), experiment, second, version="1")
    assert (page.status_code, page.context["changes"]) == (409, [])
    assert "No value differs, only the order of the search space or an empty part" in text_of(page)


def test_an_experiment_that_was_archived_meanwhile_says_so(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    experiments.archive(experiment, by=world.viewer)
    page = post(world.client(world.owner), experiment, edit(searching, fit__epochs=7), version="1")
    assert f"{world.viewer.username} archived the experiment" in text_of(page)


@pytest.mark.parametrize("version", ["²", "9" * 5000, "one", ""])
def test_a_version_that_is_no_number_is_no_error_of_ours(
    browser: Client, experiment: Experiment, searching: dict[str, Any], version: str
) -> None:
    answer = post(browser, experiment, edit(searching, fit__epochs=7), version=version)
    assert answer.status_code == 303


def test_a_revision_differs_from_a_draft_only_in_what_was_changed(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    experiments.change(experiment, spec=edit(searching, fit__epochs=9), by=world.viewer)
    page = post(world.client(world.owner), experiment, edit(searching, fit__epochs=7), version="1")
    assert [one.path for one in page.context["changes"]] == ["fit.epochs"]
    assert "The spec of revision r1 stays in the list of revisions." in text_of(page)
