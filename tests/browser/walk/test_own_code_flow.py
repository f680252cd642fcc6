"""Own code from pasted text: a class with its own fit and data, and a function with own layers and metric.

The function's model is searched by that metric, and served from a sandbox.
"""

import re

import pytest
from playwright.sync_api import expect

from tests import own_code
from tests.browser.visitor import Visitor
from tests.browser.walk.building import at, settled, step
from tests.browser.walk.cast import Cast
from tests.browser.walk.own_data import ask, open_try_it, release
from tests.flow.test_own_code import needs_sandbox, strongest
from tests.flow.yard import RunningYard

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1200)]


def store(who: Visitor, name: str, text: str) -> None:
    """Store pasted code."""
    page = who.page
    who.go("Code", "New version")
    who.follow(page.get_by_role("link", name="Paste"))
    page.get_by_label("Python code").fill(text)
    page.get_by_label("Name").fill(name)
    who.send("Store")


def paste(who: Visitor, name: str, text: str) -> None:
    """Store pasted code, and start an experiment with its first entry on the data set iris."""
    store(who, name, text)
    page = who.page
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


def load_data(who: Visitor, name: str) -> None:
    """Load the data of the code on this page, and start an experiment with them."""
    card = who.card("Data")
    card.get_by_label("Data set").fill(name)
    card.get_by_role("button", name="Load data").click()
    expect(who.page.get_by_role("dialog")).to_contain_text("A worker executes load_data of this version")
    who.confirm("Load data")
    start = card.get_by_role("link", name="Start an experiment")
    expect(start).to_be_visible(timeout=120_000)
    expect(card).to_contain_text("train 90, validation 30, test 30")
    who.see("own-data")
    who.follow(start)
    expect(at(who.page, "/data/dataset")).to_have_value(f'"{name}"')
    expect(who.page.locator("[data-code-data]")).to_contain_text(f"has loaded are “{name}”")
    expect(who.page.locator("[data-split-roles]")).to_contain_text("into the parts that “part” names")
    expect(who.page.locator("[data-split]")).to_be_hidden()


def test_a_class_with_its_own_fit_and_its_own_data_becomes_a_finished_search(cast: Cast) -> None:
    who = cast.ada
    store(who, "own loop", own_code.CUSTOM_LOOP + own_code.LOADS_IRIS)
    load_data(who, "loop-data")
    until_built(who, 3)
    without_later_steps(who)
    page = who.page
    step(page, "Search space")
    at(page, "/search/max_trials").fill("1")
    at(page, "/search/executions_per_trial").fill("1")
    until_done(who)


@needs_sandbox
def test_layers_and_a_metric_of_its_own_are_searched_approved_and_served_in_a_sandbox(
    yard: RunningYard, cast: Cast
) -> None:
    who = cast.ada
    paste(who, "layers of our own", own_code.OWN_OBJECTS)
    until_built(who, 1)
    who.see("own-code-model")
    page = who.page
    step(page, "Training")
    at(page, "/fit/epochs").fill("12")
    # The code compiles its model.
    expect(at(page, "/fit/optimizer")).to_be_hidden()
    at(page, "/fit/batch_size").fill("16")
    step(page, "Search space")
    # Fields of the fit can be searched beside the hyperparameters of the code, which compiles its model.
    names = page.get_by_label("Hyperparameter", exact=True)
    expect(names.locator("option", has_text="fit/batch_size")).to_have_count(1)
    expect(names.locator("option", has_text="fit/learning_rate")).to_have_count(0)
    # Narrower than the code declares it, then wider, which is refused at the field.
    at(page, "/search/space/0/max").fill("16")
    settled(page)
    at(page, "/search/space/0/max").fill("32")
    expect(page.locator("#experiment-form[data-verdict=bad]")).to_be_attached()
    expect(page.locator('[id="at/spec/search/space/0"]')).to_contain_text("32 is above 24")
    at(page, "/search/space/0/max").fill("16")
    # The metric of the code is offered by its name; its direction is the user's choice.
    at(page, "/search/objective/metric").select_option(label="val_macro_recall")
    expect(at(page, "/search/objective/direction")).to_have_value("")
    at(page, "/search/objective/direction").select_option(label="the higher the better")
    at(page, "/search/max_trials").fill("2")
    at(page, "/search/executions_per_trial").fill("1")
    step(page, "Afterwards")
    at(page, "/after/retrain/top").fill("1")
    at(page, "/after/ensemble").uncheck()
    at(page, "/after/register").check()
    at(page, "/after/register/model").fill("layers-of-our-own")
    until_done(who)
    expect(page.get_by_role("main")).to_contain_text("highest val_macro_recall")
    release(who, cast.grace, "layers-of-our-own")
    cast.grace.see("own-layers-approval")
    who.go("Models", "layers-of-our-own", "v1")
    expect(page.get_by_text("needed by the file")).to_be_visible()
    who.see("own-layers-version")
    open_try_it(who, "layers-of-our-own")
    page.get_by_role("spinbutton").first.fill("5.1")
    expect(ask(who)).to_have_text(re.compile("setosa|versicolor|virginica"))
    who.go("Endpoints", "layers-of-our-own")
    expect(who.card("Replicas")).to_contain_text(f"sandbox: {strongest(yard)}")
