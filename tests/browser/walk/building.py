"""Steps in which Ada uploads data and builds an experiment."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor

MODEL = "flowers"


def upload_data(user: Visitor) -> None:
    user.go("Datasets", "Upload")
    page = user.page
    rows = "\n".join(f"{n % 7},{(n * n) % 11},{'high' if n % 7 > 3 else 'low'}" for n in range(84))
    page.get_by_label("File", exact=True).set_input_files(
        {"name": "gauges.csv", "mimeType": "text/csv", "buffer": f"left,right,level\n{rows}\n".encode()}
    )
    expect(page.locator("[data-preview] th").first).to_be_visible()  # the first rows move the button
    page.get_by_label("Target", exact=True).fill("level")
    page.get_by_role("main").get_by_role("button", name="Upload").click()
    page.wait_for_url("**/datasets/gauges/**")
    expect(page.get_by_role("heading", name="Columns", exact=True)).to_be_visible()
    expect(page.locator(".ty-title .ty-state")).to_have_text("ready")
    user.check_page("dataset-uploaded")


def look_at_bundled_data(user: Visitor) -> None:
    user.go("Datasets")
    expect(user.page.get_by_role("link", name="gauges", exact=True)).to_be_visible()
    user.check_page("datasets")
    user.go("Datasets", "iris")
    expect(user.page.get_by_role("heading", name="Class balance")).to_be_visible()
    user.check_page("dataset")


def build_and_submit(user: Visitor) -> int:
    page = user.page
    user.go("Experiments")
    user.follow(page.get_by_role("main").get_by_role("link", name="New experiment").first)
    settled(page)
    page.locator("[name=name]").fill("Flowers by hand")
    at(page, "/data/dataset").select_option(label="iris")
    page.keyboard.press("Alt+ArrowDown")
    at(page, "/model/args/layers").fill("2")
    step(page, "Training")
    page.locator("[data-search-of=learning_rate]").uncheck()  # the field shows its value again
    for name, value in (("epochs", "20"), ("batch_size", "16"), ("learning_rate", "0.02")):
        at(page, f"/fit/{name}").fill(value)
    step(page, "Search space")
    at(page, "/search/max_trials").fill("4")
    keep_one_hyperparameter(page)
    step(page, "Afterwards")
    at(page, "/after/retrain/top").fill("2")
    at(page, "/after/retrain/epochs_cap").fill("20")
    at(page, "/after/quantize").check()
    at(page, "/after/register").check()
    at(page, "/after/register/model").fill(MODEL)
    choose_what_to_register(page)
    step(page, "Review")
    settled(page)
    user.press("Submit")
    page.wait_for_url("**/jobs/*")
    return int(re.search(r"/jobs/(\d+)", page.url)[1])  # type: ignore[index]


def settled(page: Page) -> None:
    """Wait until the present spec is valid."""
    expect(page.locator("#experiment-form[data-verdict=ok]")).to_be_attached()


def at(page: Page, pointer: str) -> Any:
    return page.locator(f'[id="at/spec{pointer}"]')


def step(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Steps").get_by_role("link", name=name).click()


def keep_one_hyperparameter(page: Page) -> None:
    """Remove all rows but the first, the network's width, and narrow that."""
    rows = page.locator('[data-row-of="space"]')
    while (count := rows.count()) > 1:
        rows.nth(count - 1).get_by_role("button", name="Remove", exact=True).press("Enter")
        expect(rows).to_have_count(count - 1)
    at(page, "/search/space/0/range").fill("8 … 32 step 8")


def choose_what_to_register(page: Page) -> None:
    kinds = at(page, "/after/register/what")
    for kind in ("best", "ensemble", "quantized"):
        kinds.get_by_label(kind, exact=True).check()
