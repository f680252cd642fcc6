"""The list, the page and the form of experiments, without a browser."""

import json
from typing import Any

import pytest
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.models import Experiment, Job, Trial
from jobs.queries.experiments.experiments import Difference, spec_differences
from tests.factories import make_model, make_worker
from tests.world import World

HOME = "/p/yard/experiments"


@pytest.fixture
def browser(world: World) -> Client:
    return world.client(world.owner)


@pytest.fixture
def experiment(world: World, searching: dict[str, Any]) -> Experiment:
    return experiments.create(world.project, name="first", spec=searching, tags=["fast"], by=world.owner)


def take(browser: Client, spec: Any, do: str, path: str = f"{HOME}/new", **fields: Any) -> Any:
    text = spec if isinstance(spec, str) else json.dumps(spec)
    form = {"name": "made", "tags": "a, b", "notes": "", "spec": text, "do": do, **fields}
    return browser.post(path, form)


def test_the_name_of_a_new_experiment_tells_the_template_and_is_not_taken(browser: Client) -> None:
    names = []
    for template in ("mlp", "mlp", "linear"):
        entries = browser.get(f"{HOME}/new?dataset=digits&template={template}").context["entries"]
        names.append(entries["name"])
        take(browser, entries["spec"], "draft", name=entries["name"])
    first = "digits mlp, random search"
    assert names == [first, f"{first} 2", "digits linear, random search"]


def test_an_empty_list_says_what_to_do(browser: Client) -> None:
    page = browser.get(HOME).content.decode()
    assert "No experiment yet" in page
    assert f'href="{HOME}/new"' in page


def test_the_list_shows_best_result_and_state(world: World, browser: Client, experiment: Experiment) -> None:
    job = experiments.submit(experiment, by=world.owner)
    for number, score in enumerate((0.91, 0.97, 0.93), start=1):
        Trial.objects.create(
            job=job,
            number=number,
            values={"units": 16},
            values_digest=str(number),
            state="completed",
            score=score,
        )
    page = browser.get(HOME).content.decode()
    assert "0.9700" in page
    assert "val_accuracy" in page
    assert "queued" in page


@pytest.mark.parametrize(
    ("query", "is_listed"),
    [("q=fir", True), ("q=zzz", False), ("tag=fast", True), ("tag=slow", False), ("state=none", True),
     ("state=failed", False), ("who=olga", True), ("who=vera", False), ("archived=1", False),
     ("sort=name", True), ("sort=-state", True), ("sort=nonsense", True)],
)  # fmt: skip
def test_filters_and_order_are_in_the_url(
    browser: Client, experiment: Experiment, query: str, is_listed: bool
) -> None:
    page = browser.get(f"{HOME}?{query}").content.decode()
    assert (f"{HOME}/{experiment.pk}" in page) is is_listed


def test_the_page_shows_what_a_revision_changed(
    world: World, browser: Client, experiment: Experiment, searching: dict[str, Any]
) -> None:
    experiments.change(experiment, spec={**searching, "fit": {"epochs": 9}}, by=world.owner)
    page = browser.get(f"{HOME}/{experiment.pk}").content.decode()
    assert "<code>fit.epochs</code>" in page
    assert "<del>5</del>" in page
    assert "<ins>9</ins>" in page


def test_rows_of_the_space_are_compared_by_name() -> None:
    before = {"search": {"space": [{"name": "units", "min": 1}, {"name": "dropout", "max": 0.5}]}}
    after = {"search": {"space": [{"name": "dropout", "max": 0.4}, {"name": "units", "min": 1}]}}
    assert spec_differences(before, after) == [Difference("search.space[dropout].max", 0.5, 0.4)]


def test_a_new_form_is_prefilled_for_the_requested_data_set(browser: Client) -> None:
    page = browser.get(f"{HOME}/new?dataset=diabetes")
    spec = json.loads(page.context["entries"]["spec"])
    assert spec["data"] == {"dataset": "diabetes", "dataset_version": 1, "split": spec["data"]["split"]}
    assert spec["search"]["objective"] == {"metric": "val_loss", "direction": "min"}


def test_the_form_lists_known_pools_devices_labels_and_models(browser: Client, world: World) -> None:
    gpus = [{"name": f"gpu:{number}", "kind": "NVIDIA H200"} for number in (2, 10)]
    make_worker(pool="lab", devices=[*gpus, {"name": "cpu:0", "kind": "cpu"}], labels={"site": "berlin"})
    make_worker(pool="lab", labels={"site": "berlin", "rack": "3"})
    make_model("taken", project=world.project, by=world.owner)
    page = browser.get(f"{HOME}/new")
    known = {
        "pools": ["lab"],
        "gpus": ["NVIDIA H200", "gpu:10", "gpu:2"],
        "devices": ["gpu:2", "gpu:10"],
        "labels": ["rack=3", "site=berlin"],
        "models": ["taken"],
    }
    assert page.context["known"] == known
    text = page.content.decode()
    for name, field in (
        ("pools", "resources/pool"),
        ("gpus", "resources/gpu/name"),
        ("devices", "mesh/devices/names"),
        ("labels", "resources/labels"),
        ("models", "after/register/model"),
    ):
        assert f'<datalist id="known-{name}">' in text
        assert f'id="at/spec/{field}"' in text and f'list="known-{name}"' in text


def test_submitting_the_form_queues_a_job(browser: Client, searching: dict[str, Any]) -> None:
    answer = take(browser, searching, "submit")
    job = Job.objects.get(kind="search")
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{job.pk}")
    assert job.experiment is not None
    assert job.experiment.tags == ["a", "b"]


def test_an_invalid_spec_is_shown_again_with_its_problems(browser: Client, spec: dict[str, Any]) -> None:
    answer = take(browser, {**spec, "fit": {"epochs": 0}}, "submit")
    assert answer.status_code == 422
    assert 'href="#at/spec/fit/epochs"' in answer.content.decode()
    assert not Experiment.objects.exists()


@pytest.mark.parametrize("text", ["{", "NaN", '"\\u0000"', "[" * 100_000])
def test_invalid_json_is_reported_at_its_field(browser: Client, text: str) -> None:
    for do in ("submit", "draft"):
        answer = take(browser, text, do)
        assert answer.status_code in (400, 422)
        assert 'href="#at/spec"' in answer.content.decode()


def test_a_draft_may_be_unfinished(browser: Client) -> None:
    answer = take(browser, {"version": 1}, "draft")
    draft = Experiment.objects.get()
    assert answer["Location"] == f"{HOME}/{draft.pk}/edit"
    assert draft.draft == {"version": 1}
    assert browser.get(answer["Location"]).status_code == 200


def test_a_draft_without_changes_is_not_stored(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    experiments.change(experiment, draft=searching, by=world.owner)
    assert experiment.draft is None


def test_a_number_that_is_written_in_another_way_makes_no_revision(
    world: World, experiment: Experiment, searching: dict[str, Any]
) -> None:
    """A browser writes 0.0 as 0, also in arguments of a template, which have no type."""
    stored, sent = (
        {**searching, "model": {**searching["model"], "args": {"dropout": zero}}} for zero in (0.0, 0)
    )
    experiments.change(experiment, spec=stored, by=world.owner)
    revisions = experiment.revisions.count()
    experiments.change(experiment, spec=sent, by=world.owner)
    assert experiment.revisions.count() == revisions
    experiments.change(experiment, draft=sent, by=world.owner)
    assert experiment.draft is None


def test_two_people_do_not_overwrite_each_other(
    browser: Client, experiment: Experiment, searching: dict[str, Any]
) -> None:
    path = f"{HOME}/{experiment.pk}/edit"
    first = take(browser, searching, "draft", path, version="1", name="mine")
    second = take(browser, searching, "draft", path, version="1", name="theirs")
    assert (first.status_code, second.status_code) == (303, 409)
    experiment.refresh_from_db()
    assert experiment.name == "mine"


def test_nothing_is_saved_when_the_data_are_not_ready(browser: Client, spec: dict[str, Any]) -> None:
    answer = take(browser, {**spec, "data": {"dataset": "iris"}}, "submit")
    assert answer.status_code == 422
    assert not Experiment.objects.exists()


def test_archiving_is_undone(world: World, browser: Client, experiment: Experiment) -> None:
    browser.post(f"{HOME}/{experiment.pk}/archive")
    experiment.refresh_from_db()
    assert experiment.archived
    browser.post(f"{HOME}/{experiment.pk}/unarchive")
    experiment.refresh_from_db()
    assert not experiment.archived


def test_clone_opens_the_copy_in_the_form(browser: Client, experiment: Experiment) -> None:
    answer = browser.post(f"{HOME}/{experiment.pk}/clone")
    copy = Experiment.objects.exclude(pk=experiment.pk).get()
    assert answer["Location"] == f"{HOME}/{copy.pk}/edit"


def test_the_url_contains_the_right_project(browser: Client, experiment: Experiment) -> None:
    assert browser.get(f"/p/elsewhere/experiments/{experiment.pk}").status_code == 404


def test_a_stranger_finds_nothing_and_a_viewer_changes_nothing(
    world: World, experiment: Experiment, spec: dict[str, Any]
) -> None:
    stranger, viewer = world.client(world.stranger), world.client(world.viewer)
    one = f"{HOME}/{experiment.pk}"
    for path in (HOME, f"{HOME}/new", one, f"{one}/edit"):
        assert stranger.get(path).status_code == 404
    assert [viewer.get(path).status_code for path in (HOME, one)] == [200, 200]
    assert [viewer.get(path).status_code for path in (f"{HOME}/new", f"{one}/edit")] == [403, 403]
    for verb in ("submit", "clone", "archive", "unarchive", "notes"):
        assert stranger.post(f"{one}/{verb}").status_code == 404
        assert viewer.post(f"{one}/{verb}").status_code == 403
