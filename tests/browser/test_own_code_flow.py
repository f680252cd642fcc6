"""Own code from pasted text to a finished search: a function, and a HyperModel class with its own fit."""

import re

import pytest
from playwright.sync_api import expect

from tests import own_code
from tests.browser.visitor import Visitor
from tests.browser.walk.building import at, settled, step
from tests.browser.walk.cast import Cast

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1200)]


def paste(who: Visitor, name: str, text: str) -> None:
    """Store pasted code, and start an experiment with its first entry on the data set iris."""
    page = who.page
    who.go("Code", "New version")
    who.follow(page.get_by_role("link", name="Paste"))
    page.get_by_label("Python code").fill(text)
    page.get_by_label("Name").fill(name)
    who.send("Store")
    who.follow(page.get_by_role("link", name="Start an experiment").first)
    at(page, "/data/dataset").select_option(label="iris")


def until_built(who: Visitor, hyperparameters: int) -> None:
    step(who.page, "Model")
    declared = re.compile(f"The code declares {hyperparameters} hyperparameter")
    expect(who.page.locator("[data-own-state]")).to_have_text(declared)


def without_later_steps(who: Visitor) -> None:
    step(who.page, "Afterwards")
    for pointer in ("/after/retrain", "/after/ensemble"):
        at(who.page, pointer).uncheck()


def until_done(who: Visitor) -> None:
    page = who.page
    settled(page)
    who.press("Submit")
    page.wait_for_url("**/jobs/*")
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed")


def test_a_pasted_function_becomes_a_finished_search(cast: Cast) -> None:
    who = cast.ada
    paste(who, "layers by hand", own_code.SEARCH_OF_LAYERS)
    until_built(who, 7)
    who.see("own-code-model")
    without_later_steps(who)
    page = who.page
    step(page, "Training")
    at(page, "/fit/epochs").fill("3")
    # The code compiles its model.
    expect(at(page, "/fit/optimizer")).to_be_hidden()
    step(page, "Search space")
    at(page, "/search/max_trials").fill("2")
    at(page, "/search/executions_per_trial").fill("1")
    # Narrower than the code declares it, then wider, which is refused at the field.
    at(page, "/search/space/0/max").fill("2")
    settled(page)
    at(page, "/search/space/0/max").fill("9")
    expect(page.locator("#experiment-form[data-verdict=bad]")).to_be_attached()
    expect(page.locator('[id="at/spec/search/space/0"]')).to_contain_text("9 is above 3")
    at(page, "/search/space/0/max").fill("2")
    until_done(who)


def test_a_class_with_its_own_fit_becomes_a_finished_search(cast: Cast) -> None:
    who = cast.ada
    paste(who, "own loop", own_code.CUSTOM_LOOP)
    until_built(who, 3)
    without_later_steps(who)
    page = who.page
    step(page, "Search space")
    at(page, "/search/max_trials").fill("2")
    at(page, "/search/executions_per_trial").fill("1")
    until_done(who)
