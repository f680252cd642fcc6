"""The page of the guide about a mesh for own code, in the browser: the drawn shardings are the live ones."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.visitor import Visitor
from tests.browser.walk.building import at, step
from tests.browser.walk.cast import Cast
from tests.browser.walk.test_own_code_flow import store, until_done
from tests.flow.test_own_code import needs_sandbox
from tests.flow.yard import RunningYard
from tests.ops.guide_commands import command

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "24-mesh-of-own-code.md"
EPOCHS = 2
"""Fewer than on the page, whose losses belong to ten."""

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1800)]


def block(language: str) -> str:
    """Return the page's only block in a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(text)


def rows_of(region: Locator) -> list[list[str]]:
    """Return the texts of the cells of a region's table."""
    rows = region.locator("tbody tr").all()
    return [[" ".join(cell.inner_text().split()) for cell in row.locator("td").all()] for row in rows]


def drawn_variables(page: Page) -> dict[str, tuple[str, str]]:
    """Return for each variable in the designer its axes, and the shape that a device holds."""
    return {
        path.removesuffix(" not trained"): (axes, part)
        for path, _, _, axes, part, _ in rows_of(page.locator(".md-variables"))
    }


def live_variables(page: Page) -> dict[str, tuple[str, str]]:
    """Return the same as it was read from the live arrays."""
    region = page.get_by_role("region", name="Mesh of 2 × 4 devices")
    return {
        # The page repeats the axes only where they differ.
        path: (designed if live == "as designed" else live, part)
        for path, _, designed, live, part, _ in rows_of(region)
    }


def design(user: Visitor) -> dict[str, tuple[str, str]]:
    """Design the mesh of the guide from the page of the code; return the drawn variables."""
    page = user.page
    user.follow(page.get_by_role("link", name="Mesh designer"))
    page.get_by_label("Data set").select_option("digits")
    page.get_by_role("button", name="Build the model").click()
    # It is built by a worker, and then drawn without a reload.
    expect(page.get_by_role("button", name="Columns, then rows")).to_be_visible()
    page.get_by_label("Name of axis 1").fill("batch")
    page.get_by_role("button", name="Add axis").click()
    expect(page.get_by_label("Name of axis 2")).to_have_value("model")
    page.get_by_label("Devices along axis 2").fill("4")
    page.get_by_label("Devices along axis 2").press("Enter")
    expect(page.get_by_role("region", name="Devices", exact=True).locator(".md-device")).to_have_count(8)
    page.get_by_role("button", name="Columns, then rows").click()
    expect(page.locator("#design")).to_contain_text("The plan has replaced the axes and rules")
    return drawn_variables(page)


@needs_sandbox
def test_a_mesh_that_is_drawn_for_pasted_code_is_the_one_of_its_live_arrays(
    installation: RunningYard, cast: Cast
) -> None:
    user, page = cast.ada, cast.ada.page
    store(user, "two layers", block("python"))
    drawn = design(user)
    assert ("–, model", "64 × 64") in drawn.values() and ("model, –", "64 × 128") in drawn.values()
    user.check_page("mesh-designer-of-code")
    page.get_by_role("button", name="Use in a new experiment").click()
    page.wait_for_url("**/edit#mesh")
    expect(at(page, "/mesh")).to_be_checked()
    spec: dict[str, Any] = json.loads(page.locator(".ef-text").input_value())
    assert spec["mesh"] == json.loads(block("json"))["mesh"], "the page shows this mesh"
    step(page, "Training")
    at(page, "/fit/epochs").fill(str(EPOCHS))
    step(page, "Search space")
    page.get_by_label("Search hyperparameters").uncheck()
    until_done(user)

    expect(page.get_by_role("main")).to_contain_text("Every weight is where the design puts it.")
    assert live_variables(page) == drawn
    user.check_page("mesh-of-a-job")
    # The address may have the form's step behind it.
    (job,) = re.findall(r"/jobs/(\d+)", page.url)
    answer = command(24, "/shardings").run(
        URL=installation.urls["web"], TOKEN=installation.tokens["ada"], JOB=job
    )
    shardings = json.loads(answer.stdout)
    assert (shardings["shape"], shardings["differences"], len(shardings["devices"])) == ([2, 4], 0, 8)
    # The designer of the job has both, one below the other.
    user.follow(page.get_by_role("main").get_by_role("link", name="Mesh designer"))
    assert drawn_variables(page) == live_variables(page) == drawn
