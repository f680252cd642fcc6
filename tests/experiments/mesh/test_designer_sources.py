"""The sources of the designer, the rights to use it, and its writes into experiments."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.actions.experiments import experiments
from jobs.models import Experiment, Job
from tests.experiments.mesh.conftest import TWO_BY_FOUR, fields_of
from tests.factories import make_code, make_experiment, make_job, make_model, make_trials
from tests.world import World

Open = Callable[..., Any]


def text(page: Any) -> str:
    return " ".join(page.content.decode().split())


def draft_of(experiment: Experiment) -> Any:
    experiment.refresh_from_db()
    return experiment.draft


def test_the_design_is_written_into_the_draft(browser: Client, opened: Open, experiment: Experiment) -> None:
    response = browser.post("/mesh", fields_of(opened(), do="use"))
    assert response["Location"] == f"/p/yard/experiments/{experiment.pk}/edit#mesh"
    assert draft_of(experiment)["mesh"] == TWO_BY_FOUR
    assert draft_of(experiment)["model"]["args"]["units"] == 32, "the rest of the spec is kept"


def test_the_browser_opens_the_form_after_a_design_is_used(
    browser: Client, opened: Open, experiment: Experiment
) -> None:
    answer = browser.post("/mesh", fields_of(opened(), do="use"), headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == f"/p/yard/experiments/{experiment.pk}/edit#mesh"
    assert answer.content == b""


def test_fields_of_the_mesh_that_no_design_sets_are_kept(
    world: World, browser: Client, opened: Open, experiment: Experiment
) -> None:
    body = {
        **experiment.revisions.get().spec_json,
        "mesh": {**TWO_BY_FOUR, "preallocate": True, "memory_fraction": 0.5},
    }
    experiments.change(experiment, draft=body, by=world.owner)
    browser.post("/mesh", fields_of(opened(), do="use"))
    assert (draft_of(experiment)["mesh"]["preallocate"], draft_of(experiment)["mesh"]["memory_fraction"]) == (
        True,
        0.5,
    )


def test_another_batch_and_the_slots_of_real_devices_are_written_and_named(
    browser: Client, opened: Open, experiment: Experiment
) -> None:
    page = opened({**{k: v for k, v in TWO_BY_FOUR.items() if k != "simulate"}, "devices": "gpu"})
    answer = browser.post("/mesh", fields_of(page, do="use", batch="128"), follow=True)
    assert draft_of(experiment)["fit"]["batch_size"] == 128
    assert draft_of(experiment)["resources"]["slots"] == 8
    assert "The batch size is 128 now" in text(answer)
    assert "A trial takes 8 slots now" in text(answer)


def test_a_change_by_another_person_is_not_overwritten(
    world: World, browser: Client, opened: Open, experiment: Experiment
) -> None:
    page = opened()
    experiments.change(experiment, notes="changed meanwhile", by=world.owner)
    assert browser.post("/mesh", fields_of(page, do="use")).status_code == 409
    assert draft_of(experiment) is None


def test_a_template_becomes_a_new_experiment(world: World, browser: Client) -> None:
    query = {"template": "mlp", "project": "yard", "dataset": "digits", "mesh": json.dumps(TWO_BY_FOUR)}
    browser.post("/mesh", fields_of(browser.get("/mesh", query), do="use"))
    created = Experiment.objects.get()
    assert draft_of(created)["mesh"]["shape"] == [2, 4]
    assert draft_of(created)["model"]["template"] == "mlp"


def test_a_wrong_entry_is_not_written(browser: Client, opened: Open, experiment: Experiment) -> None:
    for wrong in ({"axis_size": ["2", "x"]}, {"batch": "many"}, {"match": ["("]}):
        assert browser.post("/mesh", fields_of(opened(), do="use", **wrong)).status_code == 422
    assert draft_of(experiment) is None


def test_a_viewer_sees_the_design_and_copies_it_but_writes_nothing(
    world: World, opened: Open, experiment: Experiment
) -> None:
    viewer = world.client(world.viewer)
    page = viewer.get("/mesh", {"experiment": str(experiment.pk), "mesh": json.dumps(TWO_BY_FOUR)})
    assert "Copy as JSON" in text(page)
    assert "Use in the experiment" not in text(page)
    assert viewer.post("/mesh", fields_of(page, do="use")).status_code == 403
    assert draft_of(experiment) is None


def test_a_stranger_finds_none_of_it(world: World, experiment: Experiment) -> None:
    stranger = world.client(world.stranger)
    job = make_job(by=world.owner, experiment=experiment, kind="train", state="completed")
    code = make_code(project=world.project, by=world.owner)
    model = make_model(project=world.project, by=world.owner)
    queries: tuple[dict[str, Any], ...] = (
        {"experiment": experiment.pk},
        {"job": job.pk},
        {"code": code.digest},
        {"code": code.digest, "project": "yard"},
        {"version": f"{model.name}/1"},
        {"template": "mlp", "project": "yard"},
        {"project": "yard"},
    )
    for query in queries:
        assert stranger.get("/mesh", query).status_code == 404, query
        if "project" not in query or len(query) > 1:
            assert stranger.post("/mesh", {**query, "do": "use"}).status_code == 404, query


def test_a_visitor_logs_in_first(experiment: Experiment) -> None:
    response = Client().get("/mesh", {"experiment": experiment.pk})
    assert response.status_code == 302
    assert "/accounts/login/" in response["Location"]


def test_a_job_opens_with_the_mesh_of_its_revision(world: World, browser: Client) -> None:
    spec = {
        "version": 1,
        "data": {"dataset": "digits"},
        "model": {"kind": "template", "template": "mlp", "args": {"units": 32}},
        "mesh": TWO_BY_FOUR,
    }
    experiment = make_experiment(project=world.project, by=world.owner, spec=spec)
    job = make_job(by=world.owner, experiment=experiment, kind="train", state="completed")
    page = browser.get("/mesh", {"job": job.pk})
    assert page.context["design"].mesh.shape == (2, 4)
    assert f"Mesh of Job {job.pk}" in text(page)


def test_own_code_says_that_it_must_be_built_first(world: World, browser: Client) -> None:
    code = make_code(project=world.project, by=world.owner)
    page = browser.get(
        "/mesh", {"code": code.digest, "project": "yard", "entry": "build_model", "dataset": "digits"}
    )
    assert page.status_code == 200
    assert "The variables of own code are known once it was built" in text(page)
    assert "takes the role trainer" in text(page), "the owner here is a member"
    assert browser.post("/mesh", fields_of(page, do="build")).status_code == 403


def test_own_code_without_data_of_the_project_asks_for_the_data_set(world: World, browser: Client) -> None:
    code = make_code(project=world.project, by=world.owner)
    query = {"code": code.digest, "project": "yard", "entry": "build_model", "dataset": ""}
    page = browser.get("/mesh", query)
    assert "Choose the data set under" in text(page)
    assert "digits" in page.context["datasets"]
    chosen = browser.post("/mesh", fields_of(page, dataset="digits"), follow=True)
    assert chosen.context["subject"].spec.data.dataset == "digits"
    assert "dataset=digits" in chosen.redirect_chain[-1][0]


def test_a_template_takes_another_data_set_and_an_experiment_keeps_its_own(
    browser: Client, opened: Open
) -> None:
    page = browser.get("/mesh", {"template": "mlp", "project": "yard", "dataset": "digits"})
    other = next(name for name in page.context["datasets"] if name != "digits")
    assert f"<option selected> {other} </option>" in text(
        browser.post("/mesh", fields_of(page, dataset=other), follow=True)
    )
    assert opened().context["datasets"] == []


def test_code_that_builds_no_model_is_refused_with_the_reason(world: World, browser: Client) -> None:
    code = make_code(project=world.project, by=world.owner)
    page = browser.get("/mesh", {"code": code.digest, "project": "yard"})
    assert page.status_code == 422
    assert "no function build_model and no HyperModel" in text(page)


def timed(job: Job, minutes: float) -> None:
    for trial in make_trials(job, 3):
        assert job.started is not None
        trial.started, trial.finished = job.started, job.started + timedelta(minutes=minutes)
        trial.save()


def test_measured_speeds_stand_beside_the_expected_ones(
    world: World, browser: Client, opened: Open, experiment: Experiment
) -> None:
    alone = make_job(by=world.owner, experiment=experiment, kind="train", state="completed")
    assert "Nothing is measured yet: run the experiment once on one device" in text(opened())
    timed(alone, 10)
    assert "Run the experiment with this mesh to measure it" in text(opened())
    revised = experiments.change(
        experiment, spec={**experiment.revisions.get().spec_json, "mesh": TWO_BY_FOUR}, by=world.owner
    )
    job = make_job(by=world.owner, experiment=revised, kind="train", state="completed")
    Job.objects.filter(pk=job.pk).update(revision=revised.revisions.order_by("-number").first())
    timed(job, 2)
    page = opened()
    measured = {row.expected.devices: row.measured for row in page.context["design"].speeds}
    assert measured[8] == pytest.approx(5.0)
    assert measured[1] == pytest.approx(1.0)
    assert f'href="/jobs/{job.pk}"' in text(page)
    other = opened({**TWO_BY_FOUR, "devices": "gpu", "simulate": None})
    assert {row.expected.devices: row.measured for row in other.context["design"].speeds}[8] is None


def test_the_form_saves_the_draft_and_opens_the_designer(
    browser: Client, world: World, spec: dict[str, Any]
) -> None:
    form = {
        "name": "made",
        "tags": "",
        "notes": "",
        "spec": json.dumps({**spec, "mesh": TWO_BY_FOUR}),
        "do": "design",
    }
    response = browser.post("/p/yard/experiments/new", form)
    created = Experiment.objects.get()
    assert response["Location"] == f"/mesh?experiment={created.pk}"
    assert draft_of(created)["mesh"] == TWO_BY_FOUR
    page = browser.get(response["Location"])
    assert f'href="/p/yard/experiments/{created.pk}/edit#mesh"' in text(page)


def test_pages_lead_to_the_designer(browser: Client, experiment: Experiment) -> None:
    assert f"/mesh?experiment={experiment.pk}" in text(browser.get(f"/p/yard/experiments/{experiment.pk}"))
    assert 'value="design"' in text(browser.get(f"/p/yard/experiments/{experiment.pk}/edit"))
