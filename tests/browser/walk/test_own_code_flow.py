"""Own code from pasted text: data that it loads, and a model with its own layers, searched by its own metric.

The model is served from a sandbox, and compared there with the ensemble of both.
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
from tests.flow.yard import PROJECT, RunningYard
from tests.ops.conftest import wait_for
from webapp.demo.client import Body

MODEL = "layers-of-our-own"

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1200)]


def store(user: Visitor, name: str, text: str) -> None:
    """Store pasted code."""
    page = user.page
    user.go("Code", "New version")
    user.follow(page.get_by_role("link", name="Paste"))
    page.get_by_role("textbox", name="Python code").fill(text)
    page.get_by_label("Name").fill(name)
    user.send("Store")


def until_built(user: Visitor, hyperparameters: int) -> None:
    step(user.page, "Model")
    declared = re.compile(f"The code declares {hyperparameters} hyperparameter")
    expect(user.page.locator("[data-own-state]")).to_have_text(declared)


def until_done(user: Visitor) -> None:
    page = user.page
    settled(page)
    user.press("Submit")
    page.wait_for_url("**/jobs/*")
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed")


def load_data(user: Visitor, name: str) -> None:
    """Load the data of the code on this page, and start an experiment with them."""
    card = user.card("Data")
    card.get_by_label("Data set").fill(name)
    card.get_by_role("button", name="Load data").click()
    expect(user.page.get_by_role("dialog")).to_contain_text("A worker executes load_data of this version")
    user.confirm("Load data")
    start = card.get_by_role("link", name="Start an experiment")
    expect(start).to_be_visible(timeout=120_000)
    expect(card).to_contain_text("train 90, validation 30, test 30")
    user.check_page("own-data")
    user.follow(start)
    expect(at(user.page, "/data/dataset")).to_have_value(f'"{name}"')
    expect(user.page.locator("[data-code-data]")).to_contain_text(f"has loaded are “{name}”")
    expect(user.page.locator("[data-split-roles]")).to_contain_text("into the parts that “part” names")
    expect(user.page.locator("[data-split]")).to_be_hidden()


def assert_its_file_is_accepted(installation: RunningYard) -> None:
    """Add the file of the first version to another model, with its code; wait until it is validated."""
    first = installation.ada.get(f"/models/{MODEL}/versions/1")
    web = f"{installation.urls['web']}/api/v1"
    file = installation._http.get(
        f"{web}/artifacts/{first['digest']}", headers=installation.bearer("ada")
    ).content
    installation.ada.post("/models", {"name": "imported-layers", "project": PROJECT})
    versions = "/models/imported-layers/versions"
    installation.ada.upload(versions, {"code": first["lineage"]["code"]}, "m.keras", file)

    def validated() -> Body | None:
        answer = installation.ada.get(f"{versions}/1")
        return None if answer["state"] == "validating" else answer

    version = wait_for(validated, "the import to be validated")
    assert (version["state"], version["code"]["needed"]) == ("candidate", True), version["error"]


def assert_gates_run_in_sandboxes(installation: RunningYard) -> None:
    """Compare the ensemble with the version in production: each is executed in a sandbox of its own."""
    versions = {
        version["what"]: version["number"]
        for version in installation.ada.get(f"/models/{MODEL}/versions")["items"]
    }
    address, judged = installation.gated(MODEL, versions["ensemble"])
    gates = {gate["name"]: gate for gate in judged["gates"]}
    assert gates["metric"]["champion"] is not None, gates["metric"]["detail"]
    assert "in a sandbox" in gates["loads"]["detail"]
    assert installation.job(judged["gate_job"])["sandbox"] == {
        "level": strongest(installation),
        "network": False,
    }
    # The other flows share this installation, and count the requests that wait.
    installation.ada.post(f"{address}/withdraw", {"comment": "Only its gates were asked for."})


@needs_sandbox
def test_data_layers_and_a_metric_of_its_own_are_searched_approved_and_served_in_a_sandbox(
    installation: RunningYard, cast: Cast
) -> None:
    user = cast.ada
    store(user, "layers of our own", own_code.OWN_OBJECTS + own_code.LOADS_IRIS)
    load_data(user, "own-iris")
    until_built(user, 1)
    user.check_page("own-code-model")
    page = user.page
    step(page, "Training")
    at(page, "/fit/epochs").fill("12")
    # The code compiles its model.
    expect(at(page, "/fit/optimizer")).to_be_hidden()
    at(page, "/fit/batch_size").fill("16")
    step(page, "Search space")
    # Fields of the fit can be searched beside the hyperparameters of the code, which compiles its model.
    page.get_by_label("Add a hyperparameter").click()
    names = page.get_by_role("listbox", name="Hyperparameters")
    expect(names.get_by_role("option", name="fit/batch_size")).to_have_count(1)
    expect(names.get_by_role("option", name="fit/learning_rate")).to_have_count(0)
    page.keyboard.press("Escape")
    # Narrower than the code declares it, then wider, which is refused at the field.
    units = at(page, "/search/space/0/range")
    units.fill("8 … 16 step 8")
    settled(page)
    expect(at(page, "/search/space/0")).to_contain_text("The code allows 8 … 24 step 8.")
    units.fill("8 … 32 step 8")
    expect(page.locator("#experiment-form[data-verdict=bad]")).to_be_attached()
    expect(at(page, "/search/space/0")).to_contain_text("32 is above 24")
    units.fill("8 … 16 step 8")
    # The metric of the code is offered by its name; its direction is the user's choice.
    at(page, "/search/objective/metric").select_option(label="val_macro_recall")
    expect(at(page, "/search/objective/direction")).to_have_value("")
    at(page, "/search/objective/direction").select_option(label="the higher the better")
    at(page, "/search/max_trials").fill("2")
    at(page, "/search/executions_per_trial").fill("1")
    step(page, "Afterwards")
    at(page, "/after/retrain/top").fill("2")
    at(page, "/after/register").check()
    for kind in ("best", "ensemble"):
        at(page, "/after/register/what").get_by_label(kind, exact=True).check()
    at(page, "/after/register/model").fill(MODEL)
    until_done(user)
    expect(page.get_by_role("main")).to_contain_text("highest val_macro_recall")
    release(user, cast.grace, MODEL)
    cast.grace.check_page("own-layers-approval")
    user.go("Models", MODEL, "v1")
    expect(page.get_by_text("needed by the file")).to_be_visible()
    user.check_page("own-layers-version")
    open_try_it(user, MODEL)
    page.get_by_role("spinbutton").first.fill("5.1")
    expect(ask(user)).to_have_text(re.compile("setosa|versicolor|virginica"))
    user.go("Endpoints", MODEL)
    expect(user.card("Replicas")).to_contain_text(f"sandbox: {strongest(installation)}")
    assert_its_file_is_accepted(installation)
    assert_gates_run_in_sandboxes(installation)
