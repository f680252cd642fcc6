"""Two people edit the notes and tags of an experiment: the second is warned, and loses nothing."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.models import Experiment
from tests.markup import one_line, text_of
from tests.world import World

HOME = "/p/yard/experiments"
MINE = {"notes": "it overfits after epoch 9", "tags": "overfits"}


@pytest.fixture
def experiment(world: World, searching: dict[str, Any]) -> Experiment:
    return experiments.create(world.project, name="first", spec=searching, tags=["fast"], by=world.owner)


@pytest.fixture
def opened(world: World, experiment: Experiment) -> tuple[Client, dict[str, str]]:
    """Return a browser and the fields of the form as the page shows them."""
    browser = world.client(world.owner)
    form = browser.get(f"{HOME}/{experiment.pk}").context["notes_form"]
    return browser, {name: form[name].value() for name in form.fields}


def send(opened: tuple[Client, dict[str, str]], experiment: Experiment, **entries: str) -> Any:
    browser, fields = opened
    return browser.post(f"{HOME}/{experiment.pk}/notes", {**fields, **entries})


def test_notes_that_another_person_saved_meanwhile_are_shown_beside_mine(
    world: World, experiment: Experiment, opened: tuple[Client, dict[str, str]]
) -> None:
    experiments.change(experiment, notes="needs more data", tags=["data"], by=world.owner)
    answer = send(opened, experiment, **MINE)
    assert answer.status_code == 409
    assert "Nothing was saved: the notes or tags were changed" in text_of(answer)
    assert "needs more data" in text_of(answer)
    card = one_line(answer).split('id="notes-title"')[1].split("</section>")[0]
    assert "it overfits after epoch 9</textarea>" in card
    assert 'value="overfits"' in card
    experiment.refresh_from_db()
    assert (experiment.notes, experiment.tags) == ("needs more data", ["data"])


def test_mine_replace_them_once_the_page_has_shown_them(
    world: World, experiment: Experiment, opened: tuple[Client, dict[str, str]]
) -> None:
    experiments.change(experiment, notes="needs more data", by=world.owner)
    form = send(opened, experiment, **MINE).context["notes_form"]
    again = {name: form[name].value() for name in form.fields}
    assert opened[0].post(f"{HOME}/{experiment.pk}/notes", again).status_code == 303
    experiment.refresh_from_db()
    assert (experiment.notes, experiment.tags) == (MINE["notes"], ["overfits"])


def test_a_draft_that_was_saved_meanwhile_is_no_conflict(
    world: World, experiment: Experiment, opened: tuple[Client, dict[str, str]]
) -> None:
    experiments.change(experiment, draft={"version": 1}, by=world.owner)
    assert send(opened, experiment, **MINE).status_code == 303


def test_tags_that_are_refused_keep_all_entries_and_what_was_seen(
    world: World, experiment: Experiment, opened: tuple[Client, dict[str, str]]
) -> None:
    answer = send(opened, experiment, **(MINE | {"tags": "x" * 51}))
    assert answer.status_code == 422
    card = one_line(answer).split('id="notes-title"')[1].split("</section>")[0]
    assert "at most 20 tags of up to 50 characters" in card.split("id_tags-hint")[-1]
    assert "it overfits after epoch 9</textarea>" in card
    experiments.change(experiment, notes="needs more data", by=world.owner)
    again = {name: answer.context["notes_form"][name].value() for name in opened[1]}
    assert opened[0].post(f"{HOME}/{experiment.pk}/notes", again | {"tags": "short"}).status_code == 409


def test_a_script_without_the_hidden_field_saves_as_before(world: World, experiment: Experiment) -> None:
    experiments.change(experiment, notes="needs more data", by=world.owner)
    answer = world.client(world.owner).post(f"{HOME}/{experiment.pk}/notes", MINE)
    assert answer.status_code == 303
