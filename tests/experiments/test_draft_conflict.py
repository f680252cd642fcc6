"""Two versions of a draft: the second save shows the fields that differ, and a value is chosen for each."""

import copy
import json
from typing import Any

import pytest
from django.test import Client

from jobs.actions import experiments
from jobs.models import Experiment, Job, Membership
from tests.world import World
from webapp.forms.experiment.conflict import Choice, choices, merged

HOME = "/p/yard/experiments"
UNITS = {"name": "units", "kind": "int", "min": 16, "max": 64}
RATE = {"name": "learning_rate", "kind": "float", "min": 0.001, "max": 0.1}
DROPOUT = {"name": "dropout", "kind": "float", "min": 0, "max": 0.5}


def edit(spec: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Return a copy with some values replaced: `fit__epochs=7`."""
    found = copy.deepcopy(spec)
    for path, value in parts.items():
        *above, last = path.split("__")
        here = found
        for name in above:
            here = here.setdefault(name, {})
        here[last] = value
    return found


def rows(*space: dict[str, Any]) -> dict[str, Any]:
    return {"search": {"space": list(space)}}


def test_the_version_that_changed_a_field_is_selected_first() -> None:
    base = {"fit": {"epochs": 5, "batch_size": 32, "shuffle": True}}
    mine, theirs = edit(base, fit__epochs=7, fit__shuffle=False), edit(base, fit__epochs=9, fit__batch_size=8)
    found = {one.id: (one.changed_by, one.side) for one in choices(mine, theirs, base)}
    assert found == {
        "/fit/epochs": ("both", "mine"),
        "/fit/batch_size": ("them", "theirs"),
        "/fit/shuffle": ("you", "mine"),
    }
    assert {one.side for one in choices(mine, theirs, None)} == {"mine"}, "nothing is overwritten by chance"


def test_rows_of_the_space_are_chosen_one_by_one_and_keep_their_order() -> None:
    mine, theirs = rows(UNITS, {**RATE, "max": 1}), rows(UNITS, DROPOUT, RATE)
    assert [one.id for one in choices(mine, theirs, None)] == [
        "/search/space/dropout",
        "/search/space/learning_rate/max",
    ]
    assert merged(mine, theirs, {"/search/space/dropout"}) == rows(UNITS, DROPOUT, {**RATE, "max": 1})
    assert merged(mine, theirs, set()) == mine


def test_rows_in_another_order_are_one_choice() -> None:
    mine, theirs = rows(UNITS, RATE), rows(RATE, UNITS)
    assert [one.id for one in choices(mine, theirs, None)] == ["/search/space"]
    assert merged(mine, theirs, {"/search/space"}) == theirs


def test_an_object_of_another_kind_is_one_choice() -> None:
    mine = {"model": {"template": "mlp", "args": {"units": 8}}}
    theirs = {"model": {"template": "cnn", "args": {"filters": 8}}}
    assert [one.id for one in choices(mine, theirs, None)] == ["/model"]


@pytest.mark.parametrize("mine", [{}, {"fit": None}, {"fit": {"epochs": 3}}, {"search": []}, []])
@pytest.mark.parametrize("theirs", [{"fit": {"epochs": 5}}, {"search": {"space": [UNITS, UNITS]}}, None])
def test_all_of_one_side_is_exactly_that_side(mine: Any, theirs: Any) -> None:
    everything = {one.id for one in choices(mine, theirs, None)}
    assert merged(mine, theirs, everything) == theirs
    assert merged(mine, theirs, set()) == mine


def test_a_choice_has_the_label_of_its_field() -> None:
    choice = Choice(("spec", "fit", "epochs"), 5, 9, "both", "mine")
    assert (choice.label, choice.place, choice.shown) == (
        "Epochs",
        "fit.epochs",
        [("mine", "5"), ("theirs", "9")],
    )


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


@pytest.fixture
def experiment(world: World, searching: dict[str, Any]) -> Experiment:
    Membership.objects.filter(user=world.viewer).update(role="member")
    return experiments.create(world.project, name="first", draft=searching, tags=["fast"], by=world.owner)


def post(browser: Client, experiment: Experiment, spec: Any, do: str = "draft", **fields: Any) -> Any:
    given = {"name": "first", "tags": "fast", "notes": "", "spec": json.dumps(spec), "do": do, **fields}
    return browser.post(f"{HOME}/{experiment.pk}/edit", given)


def asked(world: World, experiment: Experiment, spec: dict[str, Any], **fields: Any) -> tuple[Client, Any]:
    """Save a version, then another by a person who opened the form before; return their answer."""
    base = {"name": "first", "tags": "fast", "notes": "", "spec": spec}
    theirs = edit(spec, fit__epochs=9, fit__batch_size=8)
    assert post(world.client(world.viewer), experiment, theirs, version="1", name="theirs").status_code == 303
    browser = world.client(world.owner)
    mine = edit(spec, fit__epochs=7, fit__shuffle=False)
    return browser, post(browser, experiment, mine, version="1", base=json.dumps(base), **fields)


def answer(page: Any, **changes: str) -> dict[str, str]:
    """Return the fields of the page's form as a browser would send them."""
    selected = {f"take:{one.id}": one.side for one in page.context["choices"]}
    return {
        **page.context["given"],
        "resolve": str(page.context["experiment"].version),
        **selected,
        **changes,
    }


def test_the_second_save_shows_both_versions_and_who_saved_the_other(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    _, page = asked(world, experiment, searching)
    text = page.content.decode()
    assert page.status_code == 409
    assert world.viewer.username in text
    assert "Keep all of mine" in text and "Take all of theirs" in text
    fields = {one.place or one.label for one in page.context["choices"]}
    assert fields == {"Name", "fit.epochs", "fit.batch_size", "fit.shuffle"}


def test_the_chosen_values_are_saved(world: World, experiment: Experiment, searching: dict[str, Any]) -> None:
    browser, page = asked(world, experiment, searching)
    chosen = answer(page, do="draft", **{"take:/spec/fit/epochs": "theirs"})
    saved = browser.post(f"{HOME}/{experiment.pk}/edit", chosen)
    assert saved.status_code == 303
    experiment.refresh_from_db()
    assert experiment.name == "theirs"
    assert experiment.draft == edit(searching, fit__epochs=9, fit__batch_size=8, fit__shuffle=False)


def test_the_chosen_values_can_be_edited_further(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = asked(world, experiment, searching)
    form = browser.post(f"{HOME}/{experiment.pk}/edit", answer(page, do="edit"))
    assert form.status_code == 200
    assert "data-unsaved" in form.content.decode()
    assert json.loads(form.context["given"]["spec"])["fit"]["epochs"] == 7
    given = {
        name: form.context["given"][name] for name in ("name", "tags", "notes", "spec", "version", "base")
    }
    assert browser.post(f"{HOME}/{experiment.pk}/edit", {**given, "do": "draft"}).status_code == 303


def test_a_third_version_asks_again_and_keeps_what_was_chosen(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = asked(world, experiment, searching)
    third = edit(searching, fit__epochs=11, fit__batch_size=8)
    assert post(world.client(world.viewer), experiment, third, version="2").status_code == 303
    again = browser.post(
        f"{HOME}/{experiment.pk}/edit", answer(page, do="draft", **{"take:/spec/fit/epochs": "theirs"})
    )
    assert again.status_code == 409
    epochs = next(one for one in again.context["choices"] if one.place == "fit.epochs")
    assert (epochs.theirs, epochs.side) == (11, "theirs")


def test_a_submission_over_another_version_asks_before_it_queues(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    browser, page = asked(world, experiment, searching, do="submit")
    assert (page.status_code, Job.objects.filter(kind="search").exists()) == (409, False)
    done = browser.post(f"{HOME}/{experiment.pk}/edit", answer(page, do="submit"))
    assert (done.status_code, Job.objects.filter(kind="search").count()) == (303, 1)


def test_the_same_version_saved_twice_needs_no_choice(
    browser: Client, experiment: Experiment, searching: dict[str, Any]
) -> None:
    for _ in range(2):
        assert post(browser, experiment, edit(searching, fit__epochs=7), version="1").status_code == 303


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
    assert [one.place for one in page.context["choices"]] == ["fit.epochs"]
