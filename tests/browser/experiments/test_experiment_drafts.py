"""Drafts in the experiment form: two tabs, unsaved changes, sweeps and the way back."""

import json

import pytest
from playwright.sync_api import Dialog, Page, expect

from jobs.models import DatasetVersion
from tests.browser.conftest import Watch
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


def test_leaving_with_unsaved_changes_asks_for_confirmation(form: Page) -> None:
    page = form
    step(page, "Model")
    at(page, "/model/args/layers").fill("3")
    dialogs: list[str] = []

    def stay(dialog: Dialog) -> None:
        dialogs.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_role("link", name="Queue").click()
    expect(at(page, "/model/args/layers")).to_have_value("3")
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
    for page, layers, epochs in ((first, "2", "7"), (second, "3", "100")):
        step(page, "Model")
        at(page, "/model/args/layers").fill(layers)
        step(page, "Training")
        at(page, "/fit/epochs").fill(epochs)
        page.get_by_role("button", name="Save draft").click()
    expect(second.get_by_role("alert").first).to_contain_text("owner saved another version")
    watch.ignore("409")
    rows = second.locator(".ex-diff tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="model.args.layers")).to_contain_text("3")
    look(second, "experiment-conflict")
    second.get_by_role("button", name="Continue editing").click()
    settled(second, "ok")
    assert (spec(second)["model"]["args"]["layers"], spec(second)["fit"]["epochs"]) == (3, 100)
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
    assert (spec(second)["model"]["args"]["layers"], spec(second)["fit"]["epochs"]) == (3, 100)


def test_what_was_typed_survives_a_closed_tab_until_it_is_restored_discarded_or_submitted(
    form: Page, people: People, open_as: Open, look: Look
) -> None:
    page = form
    page.on("dialog", lambda dialog: dialog.accept())
    step(page, "Model")
    at(page, "/model/args/layers").fill("3")
    page.locator("[name=name]").evaluate("field => field.value = 'mine'")
    settled(page, "ok")
    page.reload()
    offer = page.locator("[data-draft-note]")
    expect(offer).to_contain_text("a draft of this form from just now")
    look(page, "experiment-form-draft")
    # Another person at the same browser does not see it.
    stored = page.evaluate("Object.entries(localStorage)")
    assert len(stored) == 1 and f":{people.owner.username}:" in stored[0][0]
    assert "csrf" not in stored[0][1]
    page.get_by_role("button", name="Restore the draft").click()
    expect(at(page, "/model/args/layers")).to_have_value("3")
    assert spec(page)["model"]["args"]["layers"] == 3
    settled(page, "ok")
    page.reload()
    page.get_by_role("button", name="Discard it").click()
    page.reload()
    expect(offer).to_be_hidden()
    step(page, "Model")
    at(page, "/model/args/layers").fill("4")
    settled(page, "ok")
    page.get_by_role("button", name="Save draft").click()
    page.wait_for_url("**/edit*")
    assert page.evaluate("Object.keys(localStorage)") == []
