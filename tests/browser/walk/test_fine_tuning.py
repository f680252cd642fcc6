"""Fine-tuning in the browser: an imported model, its layers, a new head, and the registered result."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.walk.building import at, settled, step
from tests.browser.walk.cast import Cast
from tests.imported_model import imported_model

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1800)]


def test_an_imported_model_is_fine_tuned_and_registered(cast: Cast, tmp_path: Path) -> None:
    ada = cast.ada
    page = ada.page
    ada.go("Models", "New model")
    page.get_by_label("Name").fill("brought")
    ada.send("Create model")
    content = imported_model(tmp_path / "brought.keras")
    page.get_by_label("File").set_input_files(
        {"name": "brought.keras", "mimeType": "application/octet-stream", "buffer": content}
    )
    ada.send("Upload as a version")
    expect(page.locator(".ty-title .ty-state").first).to_have_text("candidate")
    ada.follow(page.get_by_role("link", name="Fine-tune"))

    expect(page.get_by_role("heading", name="Model", exact=True)).to_be_visible()
    assert at(page, "/model/model").input_value() == "brought/1"
    step(page, "Data")
    at(page, "/data/dataset").select_option(label="iris")
    step(page, "Model")
    settled(page)
    at(page, "/model/args/head").select_option(label="keep")
    expect(page.get_by_text("but these data need 3; use head new").first).to_be_visible()
    at(page, "/model/args/head").select_option(label="new")
    page.get_by_role("button", name="Freeze up to body/low").click()
    settled(page)
    layers = page.get_by_role("region", name="Layers of the version").get_by_role("row")
    expect(layers).to_have_text([
        re.compile("Layer"), re.compile("body/low.*frozen"), re.compile("body/high.*trained"),
        re.compile("output.*head, trained"),
    ])  # fmt: skip
    expect(
        page.get_by_text("brought/1: 1 of 3 layers are frozen. Trained are 99 of 139 parameters.")
    ).to_be_visible()
    assert '"freeze_to": "body/low"' in page.locator(".ef-text").input_value()
    ada.check_page("fine-tuning-form")
    step(page, "Training")
    at(page, "/fit/epochs").fill("20")
    step(page, "Search space")
    at(page, "/search/max_trials").fill("2")
    at(page, "/search/executions_per_trial").fill("1")
    step(page, "Afterwards")
    at(page, "/after/retrain/top").fill("1")
    at(page, "/after/ensemble").uncheck()
    at(page, "/after/retrain/epochs_cap").fill("20")
    at(page, "/after/register").check()
    at(page, "/after/register/model").fill("ours")
    step(page, "Review")
    settled(page)
    expect(page.get_by_text("1 of 3, up to body/low")).to_be_visible()
    ada.press("Submit")
    page.wait_for_url("**/jobs/*")
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed")
    ada.follow(page.get_by_role("main").get_by_role("link", name="registered as ours v1", exact=True))
    expect(ada.card("Origin")).to_contain_text("brought v1")
    expect(ada.card("Origin")).to_contain_text("frozen up to body/low, new head")
    ada.check_page("fine-tuned-version")
    ada.tab("Layers")
    expect(page.locator(".ty-kpis")).to_contain_text("99")
    expect(page.get_by_role("region", name="Layers").get_by_text("frozen")).to_have_count(1)
    ada.go("Models", "brought", "v1")
    expect(ada.card("Origin")).to_contain_text("Fine-tuned from this version: ours v1")
