"""Steps from a file of one's own to a served model: upload, training, release, and a request."""

import json
import shlex
from typing import Any

import httpx2
from playwright.sync_api import FilePayload, Locator, expect

from tests.browser.visitor import Visitor
from tests.browser.walk.building import at, settled, step
from tests.browser.walk.releasing import request


def upload(user: Visitor, name: str, content: bytes) -> None:
    """Upload a file under its own name, and wait until a worker has read it."""
    page = user.page
    user.go("Datasets", "Upload")
    file: FilePayload = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.get_by_label("File", exact=True).set_input_files(file)
    if name.endswith(".csv"):
        expect(page.locator("[data-preview] th").first).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url(f"**/datasets/{name.partition('.')[0]}/**")
    until_read(user)


def until_read(user: Visitor) -> None:
    expect(user.page.locator(".ty-title .ty-state")).to_have_text("ready")
    expect(user.page.get_by_role("heading", name="Columns", exact=True)).to_be_visible()


def train(user: Visitor, template: str, *, epochs: int, learning_rate: float) -> str:
    """Train a model on this page's data set and register it. Return the model's name."""
    page = user.page
    user.follow(page.get_by_role("main").get_by_role("link", name="Start an experiment"))
    settled(page)
    step(page, "Model")
    at(page, "/model/template").select_option(label=template)
    step(page, "Training")
    at(page, "/fit/epochs").fill(str(epochs))
    at(page, "/fit/learning_rate").fill(str(learning_rate))
    step(page, "Search space")
    page.get_by_label("Search hyperparameters").uncheck()
    step(page, "Afterwards")
    page.get_by_label("Register versions").check()
    model = at(page, "/after/register/model").input_value()
    settled(page)
    user.press("Submit")
    page.wait_for_url("**/jobs/*")
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed")
    return str(model)


def release(trainer: Visitor, approver: Visitor, model: str) -> None:
    """Follow the job's link to the version, request its promotion, and approve it as another person."""
    trainer.follow(trainer.page.get_by_role("main").get_by_role("link", name=f"{model} v1", exact=True).first)
    expect(trainer.page.get_by_label("Reason")).to_be_visible()
    request(trainer, "The first model of this file.")
    approver.go("Approvals")
    approver.follow(row_of(approver, model).get_by_role("link"))
    for box in approver.page.locator("[name=accept]").all():
        box.check()
    approver.press("Approve")
    expect(approver.card("Outcome").locator(".ty-state")).to_have_text("released")


def row_of(user: Visitor, model: str) -> Locator:
    return user.page.get_by_role("row").filter(has=user.page.get_by_role("cell", name=f"{model} v1"))


def open_try_it(user: Visitor, model: str) -> None:
    user.go("Endpoints", model, "Try it")


def ask(user: Visitor) -> Locator:
    """Send the form, and return its answer."""
    answer = user.page.locator("#answer .ty-answer")
    # The answer before is gone, so it cannot be taken for this one.
    user.page.locator("#answer").evaluate("place => place.replaceChildren()")
    with user.page.expect_response("**/predict"):
        user.press("Predict")
    expect(answer).to_be_visible()
    return answer


def asked_by_the_command(user: Visitor) -> list[Any]:
    """Send the request of the curl command on the tab "Use it", and return the predictions."""
    user.tab("Use it")
    words = shlex.split(user.page.locator("#use-curl").inner_text())
    url, body = words[2], json.loads(words[words.index("-d") + 1])
    answer = httpx2.post(url, json=body, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text
    predictions: list[Any] = answer.json()["predictions"]
    return predictions
