"""Fields of the experiment form that appear, hide and suit the data."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from jobs.models import DatasetVersion, Experiment
from tests.browser.experiments.test_experiment_form import FORM, Open, at, settled, spec, step
from tests.browser.looking import Look
from tests.datasets.making import bundle
from tests.people import People


@pytest.fixture
def data(people: People) -> dict[str, DatasetVersion]:
    return bundle()


@pytest.fixture
def form(people: People, data: dict[str, DatasetVersion], open_as: Open) -> Page:
    page = open_as(people.owner, FORM)
    settled(page, "ok")
    return page


def test_several_objectives_are_rows_and_one_is_the_objective_again(form: Page) -> None:
    page = form
    step(page, "Search space")
    lead = spec(page)["search"]["objective"]
    page.get_by_role("button", name="Add objective").click()
    search = spec(page)["search"]
    assert search["objectives"][0] == lead and "objective" not in search
    at(page, "/search/objectives/1/direction").select_option(label="the lower the better")
    settled(page, "ok")
    page.get_by_role("group", name="Objective 1").get_by_role("button", name="Remove").click()
    search = spec(page)["search"]
    assert search["objective"]["metric"] == "val_loss" and "objectives" not in search


def test_another_data_set_changes_the_objective_that_does_not_suit_it(form: Page) -> None:
    page = form
    at(page, "/data/dataset").select_option(label="diabetes")
    settled(page, "ok")
    assert spec(page)["search"]["objective"] == {"metric": "val_loss", "direction": "min"}


def test_the_proposed_name_follows_data_model_and_algorithm_until_the_user_writes_one(
    people: People, form: Page
) -> None:
    Experiment.objects.create(project=people.project, name="diabetes mlp", created_by=people.owner)
    page, name = form, form.locator("[name=name]")
    page.reload()
    expect(name).to_have_value(re.compile("^digits .+, random search$"))
    at(page, "/data/dataset").select_option(label="diabetes")
    step(page, "Model")
    at(page, "/model/template").select_option(label="Multilayer perceptron")
    step(page, "Search")
    at(page, "/search/algorithm").select_option(value=json.dumps("keras_tuner_bayesian"))
    expect(name).to_have_value("diabetes mlp, keras tuner bayesian search")
    at(page, "/search").uncheck()
    expect(name).to_have_value("diabetes mlp 2")
    step(page, "Data")
    name.fill("sugar")
    at(page, "/data/dataset").select_option(label="iris")
    expect(name).to_have_value("sugar")


def test_templates_that_do_not_take_the_data_cannot_be_chosen(form: Page) -> None:
    page = form
    step(page, "Model")
    refused = at(page, "/model/template").locator("option:disabled")
    texts = ["Bag of n-grams", "Transformer for texts"]
    images = ["Convolutional network", "Residual network"]
    # The images have 8 × 8 pixels.
    expect(refused).to_have_text([*texts, "Sequence network", "HyperResNet of KerasTuner"])
    step(page, "Data")
    at(page, "/data/dataset").select_option(label="diabetes")
    step(page, "Model")
    hypermodels = ["HyperXception of KerasTuner", "HyperResNet of KerasTuner"]
    expect(refused).to_have_text([*images, *texts, "Sequence network", *hypermodels])


def test_windows_over_time_make_sequences_of_the_rows_of_a_table(form: Page, look: Look) -> None:
    page = form
    at(page, "/data/dataset").select_option(label="diabetes")
    at(page, "/data/window").check()
    at(page, "/data/window/rows").fill("8")
    at(page, "/data/window/time").select_option(label="age")
    look(page, "experiment-windows")
    assert spec(page)["data"]["window"] == {"rows": 8, "horizon": 0, "time": "age"}
    step(page, "Model")
    template = at(page, "/model/template")
    expect(template.locator("option", has_text="Sequence network")).to_be_enabled()
    expect(template.locator("option", has_text="Bag of n-grams")).to_be_disabled()
    template.select_option(label="Sequence network")
    expect(at(page, "/model/args/steps")).to_be_visible()
    step(page, "Data")
    at(page, "/data/window").uncheck()
    assert "window" not in spec(page)["data"]


def test_the_mesh_is_drawn_and_its_rules_are_validated(form: Page, look: Look) -> None:
    page = form
    step(page, "Mesh")
    page.get_by_label("Use several devices").check()
    page.locator("#axis-0-size").fill("4")
    page.get_by_role("button", name="Add axis").click()
    page.get_by_role("button", name="Suggest rules").click()
    settled(page, "ok")
    assert spec(page)["mesh"]["shape"] == [4, 2]
    assert spec(page)["mesh"]["simulate"] == 8
    expect(page.get_by_role("img", name="8 devices")).to_be_visible()
    expect(page.locator("[data-variables] tbody tr").first).to_contain_text("dense_1/kernel")
    at(page, "/mesh/layout/0/match").fill("dense")
    settled(page, "bad")
    expect(page.locator('[id="at/spec/mesh/layout/0"]')).to_contain_text("matches no variable")
    look(page, "experiment-form-mesh")


def test_labels_are_a_list_and_a_text_that_is_none_is_reported_at_the_field(form: Page) -> None:
    page = form
    step(page, "Resources")
    labels = at(page, "/resources/labels")
    labels.fill("gpu=h200, site = berlin")
    settled(page, "ok")
    assert spec(page)["resources"]["labels"] == {"gpu": "h200", "site": "berlin"}
    for text in ("gpu", "gpu=a, gpu=b"):
        labels.fill(text)
        settled(page, "bad")
    labels.fill("")
    settled(page, "ok")
    assert "labels" not in spec(page)["resources"]


def test_only_arguments_of_the_selected_schedule_and_optimizer_are_shown_and_kept(form: Page) -> None:
    page = form
    step(page, "Training")
    expect(at(page, "/fit/schedule/kind")).to_be_hidden()
    at(page, "/fit/schedule").check()
    at(page, "/fit/schedule/alpha").fill("0.1")
    expect(at(page, "/fit/schedule/patience")).to_be_hidden()
    at(page, "/fit/schedule/kind").select_option(label="on a plateau")
    expect(at(page, "/fit/schedule/alpha")).to_be_hidden()
    expect(at(page, "/fit/schedule/factor")).to_have_attribute("placeholder", "0.5")
    at(page, "/fit/schedule/patience").fill("2")
    at(page, "/fit/optimizer").select_option(label="adamw")
    at(page, "/fit/optimizer_args/weight_decay").fill("0.01")
    at(page, "/fit/optimizer_args/amsgrad").check()
    at(page, "/fit/optimizer").select_option(label="sgd")
    at(page, "/fit/optimizer_args/momentum").fill("0.9")
    settled(page, "ok")
    fit = spec(page)["fit"]
    assert fit["schedule"] == {"kind": "reduce_on_plateau", "patience": 2}
    assert fit["optimizer_args"] == {"weight_decay": 0.01, "momentum": 0.9}
    step(page, "Search space")
    page.get_by_text("More settings").click()
    expect(at(page, "/search/evaluation/folds")).to_be_hidden()
    at(page, "/search/evaluation/kind").select_option(label="each fold in turn")
    at(page, "/search/evaluation/folds").fill("3")
    settled(page, "ok")
    expect(page.locator("[data-plan]")).to_contain_text("12 trials × 6")


def test_settings_without_effect_on_trees_are_hidden_and_removed(form: Page) -> None:
    page = form
    step(page, "Model")
    at(page, "/model/template").select_option(label="Trees")
    expect(at(page, "/model/args/method")).to_be_visible()
    body = spec(page)
    assert set(body["fit"]) == {"epochs", "early_stopping"}
    assert "learning_rate" not in [row["name"] for row in body["search"]["space"]]
    step(page, "Training")
    expect(at(page, "/fit/epochs")).to_be_visible()
    expect(at(page, "/fit/optimizer")).to_be_hidden()
    expect(page.get_by_text("Learning-rate schedule")).to_be_hidden()
    step(page, "Mesh")
    expect(page.get_by_text("This has no effect on trees: its trees are grown on the CPU.")).to_be_visible()
    expect(page.get_by_text("Use several devices")).to_be_hidden()
    step(page, "Model")
    at(page, "/model/template").select_option(label="Multilayer perceptron")
    step(page, "Mesh")
    expect(page.get_by_text("Use several devices")).to_be_visible()


def test_a_hypermodel_is_chosen_among_the_templates_with_its_search_space(form: Page, look: Look) -> None:
    page = form
    step(page, "Model")
    offered = at(page, "/model/template")
    expect(offered.get_by_role("option", name="HyperResNet of KerasTuner", exact=True)).to_be_disabled()
    offered.select_option(label="HyperXception of KerasTuner")
    expect(page.get_by_text("separable convolutions with residual connections")).to_be_visible()
    expect(at(page, "/model/args/pooling").locator("option:not([hidden])")).to_have_text(
        ["avg", "flatten", "max"]
    )
    expect(page.get_by_role("link", name="Range of Pooling")).to_have_text("avg, flatten, max")
    page.get_by_title("Search Pooling", exact=True).uncheck()  # the field shows its value again
    at(page, "/model/args/pooling").select_option(label="max")
    expect(at(page, "/model/args/activation").locator("option:not([hidden])")).to_have_text(["relu", "selu"])
    settled(page, "ok")
    body = spec(page)
    assert body["model"] == {"kind": "hypermodel", "name": "HyperXception", "args": {"pooling": "max"}}
    names = [row["name"] for row in body["search"]["space"]]
    assert names[:2] == ["activation", "conv2d_num_filters"] and names[-1] == "learning_rate"
    assert "units" not in names and "pooling" not in names
    look(page, "form-hypermodel")
    step(page, "Model")
    offered.select_option(label="Convolutional network")
    settled(page, "ok")
    body = spec(page)
    assert body["model"]["template"] == "cnn" and "name" not in body["model"]
    assert [row["name"] for row in body["search"]["space"]] == [
        "filters",
        "units",
        "dropout",
        "learning_rate",
    ]


def test_the_steps_that_choose_among_trials_are_switched_with_the_search(form: Page) -> None:
    page, toggle = form, "Search hyperparameters"
    before = spec(page)["after"]
    assert {*before} == {"retrain", "ensemble"}
    step(page, "Search space")
    page.get_by_label(toggle).uncheck()
    assert spec(page).get("after", {}) == {}
    settled(page, "ok")
    page.get_by_label(toggle).check()
    assert spec(page)["after"] == before
    settled(page, "ok")
