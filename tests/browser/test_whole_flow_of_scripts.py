"""A script with arguments, from its file to a finished search and a served version, in the browser."""

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.walk.cast import Cast
from tests.browser.walk.own_data import release
from tests.flow.test_scripts import SCRIPT

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1800)]


def test_a_script_is_searched_over_its_arguments_and_its_model_is_served(cast: Cast) -> None:
    ada, page = cast.ada, cast.ada.page
    ada.go("Code", "New version")
    file: FilePayload = {"name": "train.py", "mimeType": "text/x-python", "buffer": SCRIPT.encode()}
    page.get_by_label("Files", exact=True).set_input_files(file)
    ada.send("Store")
    ada.follow(page.get_by_role("link", name="Start an experiment"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Run a script")
    # Nothing is searched yet.
    expect(page.get_by_label("Objective")).to_be_hidden()
    rate = page.get_by_role("group", name="Argument 1, rate")
    rate.get_by_label("Use").select_option(label="search values")
    rate.get_by_label("Value").fill("0.0, 0.2")
    epochs = page.get_by_role("group", name="Argument 2, epochs")
    epochs.get_by_label("Use").select_option(label="one value")
    epochs.get_by_label("Value").fill("30")
    page.get_by_label("Data", exact=True).select_option(label="iris v1")
    page.get_by_label("Objective").fill("accuracy")
    page.get_by_label("Algorithm").select_option(value="grid")
    page.get_by_label("Steps of a full run").fill("30")
    page.get_by_label("Register as").fill("iris-script")
    ada.see("script-form")
    ada.send("Submit")
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed")
    ada.see("script-search")
    ada.tab("Artifacts")
    expect(page.get_by_role("main")).to_contain_text("trial-1/notes/run.txt")
    ada.see("script-artifacts")
    ada.tab("Overview")
    release(ada, cast.grace, "iris-script")
