"""The experiment form by mouse and keyboard: fields and JSON stay in sync, errors are at their fields."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect

from jobs.models import DatasetVersion, Experiment, Job, Membership
from jobs.spec.experiment import ExperimentSpec
from tests import own_code
from tests.browser.conftest import Watch
from tests.browser.looking import Look
from tests.datasets.making import bundle
from tests.factories import SEARCH, make_dataset, make_experiment, make_job
from tests.people import People, browser_of

Open = Callable[..., Page]
FORM = "/p/yard/experiments/new"


@pytest.fixture
def data(people: People) -> dict[str, DatasetVersion]:
    return bundle()


@pytest.fixture
def form(people: People, data: dict[str, DatasetVersion], open_as: Open) -> Page:
    page = open_as(people.owner, FORM)
    settled(page, "ok")
    return page


def settled(page: Page, verdict: str) -> None:
    """Wait until the present spec has been validated."""
    expect(page.locator(f"#experiment-form[data-verdict={verdict}]")).to_be_attached()


def at(page: Page, pointer: str) -> Any:
    return page.locator(f'[id="at/spec{pointer}"]')


def spec(page: Page) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(page.locator(".ef-text").input_value())
    return body


def step(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Steps").get_by_role("link", name=name).click()


def test_own_code_is_asked_for_only_where_it_is_the_template(form: Page) -> None:
    form.get_by_role("link", name="Model", exact=True).click()
    expect(form.get_by_role("group", name="Arguments")).to_be_visible()
    expect(form.locator("[data-own-code]")).to_be_hidden()
    form.locator('[id="at/spec/model/template"]').select_option(label="Own code")
    expect(form.locator("[data-own-code]")).to_be_visible()
    expect(form.get_by_role("group", name="Arguments")).to_be_hidden()


def test_a_failed_dry_build_is_named_at_its_entry_and_a_refusal_is_shown_on_a_narrow_screen(
    people: People, open_as: Open, watch: Watch, look: Look
) -> None:
    make_dataset("flowers", project=people.project, by=people.member)
    api = browser_of(people.trainer)
    files = [{"path": "model.py", "text": own_code.NOT_COMPILED}]
    body = {"project": "yard", "files": files}
    digest = api.post("/api/v1/code", body, content_type="application/json").json()["digest"]
    wanted = {"entry": "build_model", "data": {"dataset": "flowers"}}
    address = f"/api/v1/code/{digest}/dry-builds"
    build = Job.objects.filter(pk=api.post(address, wanted, content_type="application/json").json()["job"])
    build.update(state="failed", error={"code": "code_build", "message": "it returned nothing"})
    page = open_as(people.trainer, f"{FORM}?dataset=flowers&code={digest}&entry=build_model")
    settled(page, "bad")
    step(page, "Model")
    entry = at(page, "/model/entry").locator("..")
    expect(entry).to_contain_text("the dry build of this code failed: it returned nothing")
    expect(entry.get_by_role("link", name="Job")).to_have_attribute("href", f"/jobs/{build.get().pk}")
    look(page, "experiment-failed-build")
    # The role is taken away, and the cause of the failure was another one, while the form is open.
    build.update(state="stopped")
    page.set_viewport_size({"width": 390, "height": 844})
    at(page, "/fit/epochs").evaluate("e => e.dispatchEvent(new Event('input', {bubbles: true}))")
    settled(page, "ok")
    Membership.objects.filter(user=people.trainer).update(role="member")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(page.get_by_role("alert")).to_contain_text("takes one of these roles")
    watch.ignore("403")


def test_the_demo_search_is_built_and_submitted(form: Page, people: People) -> None:
    page = form
    page.locator("[name=name]").fill("digits by hand")
    step(page, "Model")
    at(page, "/model/args/units").fill("32")
    step(page, "Training")
    at(page, "/fit/early_stopping/patience").fill("5")
    step(page, "Search space")
    at(page, "/search/algorithm").select_option(label="Bayesian optimization (Gaussian process)")
    at(page, "/search/max_trials").fill("12")
    page.locator("#add-name").select_option(label="optimizer")
    page.get_by_role("button", name="Add", exact=True).click()
    at(page, "/search/space/3/values").fill("rmsprop, adam")
    # by keyboard: the new row goes up to the first place, so that dropout may depend on it
    row = page.locator('[id="at/spec/search/space/3"]')
    row.get_by_role("button", name="Move up").focus()
    for _ in range(3):
        page.keyboard.press("Enter")
    assert spec(page)["search"]["space"][0]["name"] == "optimizer"
    dropout = page.locator('[id="at/spec/search/space/2"]')
    dropout.get_by_role("button", name="Add a condition").click()
    page.locator("#add-name").select_option(label="optimizer_args/momentum")
    page.get_by_role("button", name="Add", exact=True).click()
    momentum = page.locator('[id="at/spec/search/space/4"]')
    momentum.get_by_role("button", name="Add a condition").click()
    fitting = {"name": "optimizer", "in": ["rmsprop"]}
    assert spec(page)["search"]["space"][4]["when"] == fitting, "adam has no momentum"
    widths = [page.locator(part).bounding_box() for part in (".ef-fields", ".ef-json")]
    assert widths[0] and widths[1] and widths[0]["width"] > 1.5 * widths[1]["width"], "names are not cut"
    momentum.get_by_role("button", name="Remove", exact=True).click()
    at(page, "/search/space/2/when/name").select_option(label="optimizer")
    at(page, "/search/space/2/when/in").fill("adam")
    step(page, "Afterwards")
    page.get_by_label("Quantize", exact=True).check()
    page.get_by_label("Register versions").check()
    at(page, "/after/register/model").fill("digits")
    step(page, "Review")
    settled(page, "ok")
    facts = page.locator("[data-review=facts]")
    expect(facts).to_contain_text("search → train → ensemble → quantize → register")
    expect(facts).to_contain_text("continuous in learning_rate; a grid over it would use 560 points")
    built = spec(page)
    assert built["search"]["space"][2]["when"] == {"name": "optimizer", "in": ["adam"]}
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*")
    job = Job.objects.get(kind="search")
    assert job.revision is not None
    assert job.revision.spec == ExperimentSpec.model_validate(built)
    assert job.experiment is not None
    assert job.experiment.name == "digits by hand"


def test_an_error_is_shown_at_its_field_in_the_json_and_in_the_summary(form: Page) -> None:
    page = form
    step(page, "Search space")
    at(page, "/search/space/0/min").fill("512")
    settled(page, "bad")
    expect(at(page, "/search/space/0/min")).to_have_attribute("aria-invalid", "true")
    expect(page.locator('[id="at/spec/search/space/0"]')).to_contain_text("min 512 is above max 128")
    expect(page.locator("#json-problems")).to_contain_text("min 512 is above max 128")
    expect(page.locator(".ef-gutter b")).to_have_count(1)
    step(page, "Data")
    page.get_by_role("button", name="Submit").click()
    expect(at(page, "/search/space/0/min")).to_be_focused()
    page.get_by_text("1 problem to fix").click()
    page.get_by_role("link", name="search › space › 0 › min").first.click()
    at(page, "/search/space/0/min").fill("16")
    settled(page, "ok")
    expect(page.locator("#json-problems li")).to_have_count(0)


def test_fields_follow_the_json(form: Page) -> None:
    page = form
    body = spec(page)
    body["fit"]["epochs"] = 7
    body["search"]["space"] = [{"name": "shuffle", "kind": "boolean"}]
    del body["after"]
    page.locator(".ef-text").fill(json.dumps(body))
    settled(page, "ok")
    step(page, "Training")
    expect(at(page, "/fit/epochs")).to_have_value("7")
    step(page, "Search space")
    expect(page.locator('[data-row-of="space"]')).to_have_count(1)
    step(page, "Afterwards")
    expect(page.get_by_label("Retrain the best")).not_to_be_checked()


def test_a_search_learns_from_one_with_the_same_objective(
    people: People, data: dict[str, DatasetVersion], open_as: Open
) -> None:
    made = [
        make_job(
            by=people.owner,
            experiment=make_experiment(
                project=people.project,
                by=people.owner,
                spec={
                    **SEARCH,
                    "search": {**SEARCH["search"], "objective": {"metric": metric, "direction": way}},
                },
            ),
        )
        for metric, way in (("val_accuracy", "max"), ("val_loss", "min"))
    ]
    page = open_as(people.owner, FORM)
    settled(page, "ok")
    step(page, "Search space")
    at(page, "/search/objective/metric").select_option(label="val_loss")
    options = at(page, "/search/warm_start").locator("option")
    expect(options).to_have_text(["none", re.compile(f"job {made[1].pk}: ")])
    at(page, "/search/algorithm").select_option(label="Bayesian optimization (Gaussian process)")
    at(page, "/search/warm_start").select_option(index=1)
    assert spec(page)["search"]["warm_start"] == made[1].pk
    settled(page, "ok")


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


def test_invalid_json_is_reported_with_its_line_and_keeps_the_fields(form: Page) -> None:
    page = form
    page.locator(".ef-text").fill('{"version": 1,\n "data": }')
    settled(page, "bad")
    expect(page.locator("#json-problems")).to_contain_text("line 2")
    step(page, "Training")
    expect(at(page, "/fit/epochs")).to_have_value("100")


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


def test_leaving_with_unsaved_changes_asks_for_confirmation(form: Page) -> None:
    page = form
    step(page, "Model")
    at(page, "/model/args/units").fill("48")
    dialogs: list[str] = []

    def stay(dialog: Dialog) -> None:
        dialogs.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_role("link", name="Queue").click()
    expect(at(page, "/model/args/units")).to_have_value("48")
    assert dialogs == ["beforeunload"]


def test_an_invalid_draft_is_saved_and_opened_again(form: Page) -> None:
    page = form
    step(page, "Training")
    at(page, "/fit/epochs").fill("many")
    settled(page, "bad")
    page.get_by_role("button", name="Save draft").click()
    page.wait_for_url("**/edit*")
    settled(page, "bad")
    step(page, "Training")
    expect(at(page, "/fit/epochs")).to_have_value("many")


def test_every_step_is_readable_in_both_themes_and_widths(form: Page, look: Look) -> None:
    # Data and the model are looked at in other tests, with more fields.
    for name in ("Search space", "Precision", "Review"):
        step(form, name)
        look(form, f"experiment-form-{name.lower().replace(' ', '-')}")


SWEEP = """method: random
run_cap: 30
program: train.py
parameters:
  dropout: {distribution: %s, min: 0.0, max: 0.5}
  layers: {min: 1, max: 3}
"""


def test_a_sweep_is_previewed_imported_undone_and_exported(form: Page, watch: Watch, look: Look) -> None:
    page = form
    step(page, "Search space")
    before = spec(page)["search"]
    page.get_by_role("button", name="Import", exact=True).click()
    dialog = page.get_by_role("dialog", name="Import a search space")
    dialog.get_by_label("Text").fill(SWEEP % "normal")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator("[data-import-result]")).to_contain_text("/parameters/dropout/distribution")
    expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_disabled()
    watch.ignore("422")
    dialog.get_by_label("Text").fill(SWEEP % "uniform")
    dialog.get_by_role("button", name="Preview").press("Enter")
    expect(dialog.locator("[data-import-result]")).to_contain_text("Weights & Biases: 2 hyperparameters")
    expect(dialog.locator("[data-import-result]")).to_contain_text("numbers from 0.0 to 0.5")
    expect(dialog.locator("[data-import-result]")).to_contain_text("program: ignored; concerns how")
    dialog.get_by_label("Append the hyperparameters only").check()
    expect(dialog.locator("[data-duplicates]")).to_contain_text("has dropout already")
    dialog.get_by_label("Replace the hyperparameters").check()
    look(page, "experiment-form-import")
    dialog.get_by_role("button", name="Import", exact=True).press("Enter")
    settled(page, "ok")
    taken = spec(page)["search"]
    assert [row["name"] for row in taken["space"]] == ["dropout", "layers"]
    assert (taken["max_trials"], taken["objective"]) == (30, before["objective"])
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    written = json.loads(download.value.path().read_text())
    assert [row["class_name"] for row in written["space"]] == ["Float", "Int"]
    page.get_by_role("button", name="Undo import").click()
    assert spec(page)["search"] == before


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
    expect(at(page, "/search/evaluation/folds")).to_be_hidden()
    at(page, "/search/evaluation/kind").select_option(label="each fold in turn")
    at(page, "/search/evaluation/folds").fill("3")
    settled(page, "ok")
    expect(page.locator("[data-plan]")).to_contain_text("12 trials × 6")


def test_back_in_the_browser_leads_to_the_step_before(form: Page) -> None:
    page = form
    page.locator("[name=name]").fill("kept")
    step(page, "Model")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("heading", name="Training", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Model", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Data", exact=True)).to_be_visible()
    expect(page.locator("[name=name]")).to_have_value("kept")
    page.go_forward()
    expect(page.get_by_role("heading", name="Model", exact=True)).to_be_visible()


def test_the_second_of_two_tabs_compares_both_versions_and_overwrites_only_when_asked(
    form: Page, open_as: Open, people: People, watch: Watch, look: Look
) -> None:
    first = form
    first.locator("[name=name]").fill("two tabs")
    first.get_by_role("button", name="Save draft").click()
    first.wait_for_url("**/edit*")
    second = open_as(people.member, first.url)
    settled(second, "ok")
    for page, units, epochs in ((first, "32", "7"), (second, "48", "100")):
        step(page, "Model")
        at(page, "/model/args/units").fill(units)
        step(page, "Training")
        at(page, "/fit/epochs").fill(epochs)
        page.get_by_role("button", name="Save draft").click()
    expect(second.get_by_role("alert").first).to_contain_text("owner saved another version")
    watch.ignore("409")
    rows = second.locator(".ex-diff tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="model.args.units")).to_contain_text("48")
    look(second, "experiment-conflict")
    second.get_by_role("button", name="Continue editing").click()
    settled(second, "ok")
    assert (spec(second)["model"]["args"]["units"], spec(second)["fit"]["epochs"]) == (48, 100)
    second.get_by_role("button", name="Save draft").click()
    discard = second.get_by_role("button", name="Discard my entries and reload")
    expect(second.get_by_role("heading", name="2 values differ")).to_be_visible()
    watch.ignore("409")
    expect(discard).to_be_hidden()
    second.locator("summary", has_text="Reload").focus()
    second.keyboard.press("Enter")
    expect(discard).to_be_visible()
    second.get_by_role("button", name="Overwrite and save as draft").click()
    second.wait_for_url("**/edit*")
    expect(second.locator("#toasts")).to_contain_text("It replaced the version that was saved meanwhile.")
    assert (spec(second)["model"]["args"]["units"], spec(second)["fit"]["epochs"]) == (48, 100)


def test_settings_without_effect_on_trees_are_hidden_and_removed(form: Page) -> None:
    page = form
    step(page, "Model")
    at(page, "/model/template").select_option(label="Trees")
    expect(at(page, "/model/args/method")).to_be_visible()
    found = spec(page)
    assert set(found["fit"]) == {"epochs", "early_stopping"}
    assert "learning_rate" not in [row["name"] for row in found["search"]["space"]]
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
    at(page, "/model/args/pooling").select_option(label="max")
    expect(at(page, "/model/args/activation").locator("option:not([hidden])")).to_have_text(["relu", "selu"])
    settled(page, "ok")
    made = spec(page)
    assert made["model"] == {"kind": "hypermodel", "name": "HyperXception", "args": {"pooling": "max"}}
    names = [row["name"] for row in made["search"]["space"]]
    assert names[:2] == ["activation", "conv2d_num_filters"] and names[-1] == "learning_rate"
    assert "units" not in names
    look(page, "form-hypermodel")
    step(page, "Model")
    offered.select_option(label="Convolutional network")
    settled(page, "ok")
    made = spec(page)
    assert made["model"]["template"] == "cnn" and "name" not in made["model"]
    assert [row["name"] for row in made["search"]["space"]] == [
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
