""" "Find me a good model" in the browser and over REST."""

from typing import Any

import pytest

from jobs.actions.registry import registry
from jobs.models import Experiment, Job, Project
from jobs.queries.runs import steps
from tests.experiments.test_api import post
from tests.factories import make_dataset
from tests.markup import text_of
from tests.present import present
from tests.world import World

PAGE = "/p/yard/find-model"
FORM = {"dataset": "digits:1", "amount": "5", "unit": "minutes", "name": ""}


def test_the_form_starts_a_search_over_all_templates_that_take_the_data(world: World) -> None:
    answer = world.client(world.owner).post(PAGE, FORM | {"do": "submit"})
    job = Job.objects.get(kind="search")
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{job.pk}")
    assert job.revision is not None
    search = job.revision.spec.search
    assert search is not None
    assert (search.space[0].name, search.max_minutes) == ("template", 5)


def test_the_form_can_open_the_experiment_without_starting_it(world: World) -> None:
    answer = world.client(world.owner).post(PAGE, FORM | {"do": "edit", "name": "mine"})
    experiment = Experiment.objects.get()
    assert answer["Location"] == f"/p/yard/experiments/{experiment.pk}/edit"
    assert experiment.name == "mine"
    assert not Job.objects.filter(kind="search").exists()


def test_each_search_without_a_name_gets_another_one(world: World) -> None:
    for _ in range(3):
        world.client(world.owner).post(PAGE, FORM | {"do": "edit"})
    names = list(Experiment.objects.order_by("pk").values_list("name", flat=True))
    first = "A good model for digits"
    assert names == [first, f"{first} 2", f"{first} 3"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"amount": ""}, "This field is required."),
        ({"unit": "trials"}, "Give a whole number of trials from 10 to 10,000."),
        ({"unit": "trials", "amount": "20.5"}, "Give a whole number of trials from 10 to 10,000."),
        ({"dataset": "digits:7"}, "not one of the available choices"),
    ],
)
def test_a_wrong_entry_is_shown_at_its_field_and_nothing_is_made(
    world: World, changed: dict[str, str], message: str
) -> None:
    answer = world.client(world.owner).post(PAGE, FORM | changed)
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert not Experiment.objects.exists()


def test_the_page_preselects_the_data_of_its_address(world: World) -> None:
    page = world.client(world.owner).get(f"{PAGE}?dataset=digits&version=1").content.decode()
    assert '<option value="digits:1" selected>' in page


def test_both_forms_begin_with_the_projects_own_newest_data(world: World) -> None:
    browser = world.client(world.owner)
    for slug in ("returns", "orders"):
        make_dataset(slug, project=world.project, by=world.owner)
        assert f'<option value="{slug}:1" selected>' in browser.get(PAGE).content.decode()
        text = browser.get("/p/yard/experiments/new").content.decode()
        assert f"&quot;dataset&quot;: &quot;{slug}&quot;" in text


def searched(job: Job) -> tuple[str, str]:
    search = present(present(job.revision).spec.search)
    return search.objective.metric, search.objective.direction


def test_the_objective_is_one_that_the_task_of_the_data_offers(world: World) -> None:
    browser = world.client(world.owner)
    field = browser.get(f"{PAGE}?dataset=digits&version=1").context["form"]["objective"]
    assert field.field.choices == [
        ("val_loss", "minimize val_loss"),
        ("val_accuracy", "maximize val_accuracy"),
    ]
    assert field.value() == "val_accuracy"
    refused = browser.post(PAGE, FORM | {"objective": "val_r2"})
    assert refused.status_code == 422 and "val_r2 is not one of the available choices" in text_of(refused)
    browser.post(PAGE, FORM | {"objective": "val_loss"})
    assert searched(Job.objects.get(kind="search")) == ("val_loss", "min")


def test_the_choices_of_the_objective_follow_the_data(world: World) -> None:
    browser = world.client(world.owner)
    part = browser.get(f"{PAGE}?dataset=diabetes:1&objective=val_accuracy", headers={"HX-Request": "true"})
    markup = part.content.decode()
    assert "<html" not in markup and "val_accuracy" not in markup
    assert '<option value="val_loss" selected>minimize val_loss</option>' in markup
    assert '<option value="val_r2">maximize val_r2</option>' in markup
    kept = browser.get(f"{PAGE}?dataset=digits:1&objective=val_loss").context["form"]["objective"]
    assert kept.value() == "val_loss", "these data offer it, too"


def test_best_model_and_ensemble_become_versions_of_a_named_model(world: World) -> None:
    browser = world.client(world.owner)
    browser.post(PAGE, FORM)
    first = Job.objects.get(kind="search")
    assert present(first.revision).spec.after.register_ is None
    browser.post(PAGE, FORM | {"register_as": "digits"})
    second = Job.objects.filter(kind="search").latest("pk")
    registration = present(present(second.revision).spec.after.register_)
    assert (registration.model, registration.what) == ("digits", ("best", "ensemble"))
    assert "register" in steps.steps_of(second)


@pytest.mark.parametrize(
    ("name", "message"),
    [("My model", "use up to 63 lower-case letters"), ("theirs", "is taken by another project")],
)
@pytest.mark.parametrize("do", ["submit", "edit"])
def test_a_model_name_that_cannot_be_used_is_refused_at_its_field(
    world: World, name: str, message: str, do: str
) -> None:
    registry.create_model(Project.objects.get(slug="elsewhere"), "theirs", by=world.stranger)
    answer = world.client(world.owner).post(PAGE, FORM | {"register_as": name, "do": do})
    assert answer.status_code == 422
    assert message in str(answer.context["form"].errors["register_as"])
    assert not Experiment.objects.exists()


def test_people_who_may_only_look_cannot_start_it(world: World) -> None:
    assert world.client(world.viewer).get(PAGE).status_code == 403
    assert world.client(world.stranger).post(PAGE, FORM).status_code == 404
    assert not Experiment.objects.exists()


def sent(**more: Any) -> dict[str, Any]:
    return {"project": "yard", "dataset": "digits", "version": 1} | more


def test_a_script_starts_it_with_a_limit_of_trials(world: World) -> None:
    answer = post(world.client(world.owner), "/experiments/find-model", sent(max_trials=20))
    assert answer.status_code == 202
    assert answer.json() == {
        "experiment": Experiment.objects.get().pk,
        "job": Job.objects.get(kind="search").pk,
        "left_out": [],
    }


def test_a_script_chooses_objective_and_registered_model(world: World) -> None:
    browser = world.client(world.owner)
    wishes = {"objective": "val_loss", "register_as": "digits"}
    assert post(browser, "/experiments/find-model", sent(max_trials=20, **wishes)).status_code == 202
    job = Job.objects.get(kind="search")
    assert searched(job) == ("val_loss", "min")
    assert present(present(job.revision).spec.after.register_).model == "digits"


@pytest.mark.parametrize(
    ("wish", "pointer"), [({"objective": "val_r2"}, "/objective"), ({"register_as": "A b"}, "/register_as")]
)
def test_a_script_learns_which_wish_is_refused(world: World, wish: dict[str, str], pointer: str) -> None:
    answer = post(world.client(world.owner), "/experiments/find-model", sent(max_trials=20, **wish))
    assert answer.status_code == 422
    assert [problem["pointer"] for problem in answer.json()["errors"]] == [pointer]
    assert not Experiment.objects.exists()


def test_a_script_that_gives_no_limit_or_both_is_refused(world: World) -> None:
    for limits in ({}, {"max_minutes": 5, "max_trials": 20}):
        answer = post(world.client(world.owner), "/experiments/find-model", sent(**limits))
        assert answer.status_code == 422
        assert "max_minutes or max_trials" in answer.content.decode()


@pytest.mark.parametrize("address", ["/", "/p/yard/experiments"])
def test_home_and_the_experiments_lead_to_the_page(world: World, address: str) -> None:
    link = f'href="{PAGE}"'
    assert link in world.client(world.owner).get(address).content.decode()
    assert link not in world.client(world.viewer).get(address).content.decode()
