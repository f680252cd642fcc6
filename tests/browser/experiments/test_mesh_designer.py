"""The mesh designer by mouse and keyboard: a 2×4 mesh is designed and used in an experiment."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from jobs.models import Experiment
from tests.browser.looking import Look
from tests.datasets.making import bundle
from tests.factories import SPEC, make_experiment
from tests.people import People

Open = Callable[..., Page]


@pytest.fixture
def experiment(people: People) -> Experiment:
    bundle()
    body: dict[str, Any] = {
        **SPEC,
        "model": {"kind": "template", "template": "mlp", "args": {"units": 64, "layers": 2}},
        "fit": {**SPEC["fit"], "batch_size": 128},
    }
    return make_experiment("spread", project=people.project, by=people.owner, spec=body)


def devices(page: Page) -> list[str]:
    return page.get_by_role("region", name="Devices").locator(".md-device").all_inner_texts()


def patterns(page: Page) -> list[str]:
    return [field.input_value() for field in page.locator("[name=match]").all()]


def drawn(page: Page, text: str) -> None:
    """Wait until the server has drawn a design."""
    expect(page.locator("#design")).to_contain_text(text)


def drag(page: Page, handle: Locator, onto: Locator) -> None:
    """Drop a handle on the upper half of an element, by the events that a browser sends for it."""
    box = onto.bounding_box()
    assert box is not None
    transfer = page.evaluate_handle("() => new DataTransfer()")
    place = {"dataTransfer": transfer, "clientX": box["x"] + 60, "clientY": box["y"] + 4}
    handle.dispatch_event("dragstart", {"dataTransfer": transfer})
    for event in ("dragover", "drop"):
        onto.dispatch_event(event, place)
    handle.dispatch_event("dragend", {"dataTransfer": transfer})


def test_a_mesh_of_two_by_four_is_designed_and_used_in_the_experiment(
    people: People, experiment: Experiment, open_as: Open, look: Look
) -> None:
    page = open_as(people.owner, f"/p/yard/experiments/{experiment.pk}")
    page.get_by_role("link", name="Mesh designer").click()
    page.get_by_role("button", name="Add axis").click()
    expect(page.get_by_label("Devices along axis 2")).to_have_value("2")
    page.get_by_label("Devices along axis 2").fill("4")
    page.get_by_label("Devices along axis 2").press("Enter")
    drawn(page, "Each batch of 128 rows is cut into 2 parts of 64 rows")
    expect(page.locator(".md-device")).to_have_count(8)

    page.get_by_role("button", name="Columns, then rows").click()
    drawn(page, "The plan has replaced the axes and rules")
    assert patterns(page) == ["dense_1/kernel", "dense_1/bias", "dense_2/kernel"]
    assert re.search("plan=alternating", page.url), "the address carries the design"
    page.get_by_role("button", name="dense_2/kernel", exact=True).click()
    drawn(page, "dense_2/kernel of shape [64, 64] is cut into 4 slices of [16, 64], each on 2 devices")

    # By keyboard: the first rule moves down, and the handle keeps the focus.
    page.get_by_role("button", name="Rule 1: drag").press("ArrowDown")
    drawn(page, "Rule 1 is rule 2 now.")
    expect(page.get_by_role("button", name="Rule 2: drag")).to_be_focused()
    expect(page.locator("[name=match]").first).to_have_value("dense_1/bias")
    page.get_by_role("button", name="Move rule 2 up").click()
    expect(page.locator("[name=match]").first).to_have_value("dense_1/kernel")
    # The last one is dragged to the top.
    expect(page.locator("#design.htmx-request")).to_have_count(0)
    drag(page, page.get_by_role("button", name="Rule 3: drag"), page.locator("[data-rule='0']"))
    expect(page.locator("[name=match]").first).to_have_value("dense_2/kernel")

    page.get_by_text("unmatched").click()
    expect(page.get_by_role("button", name="output/kernel", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="dense_1/kernel", exact=True)).to_have_count(0)
    look(page, "mesh-designer")

    page.reload()
    assert patterns(page) == ["dense_2/kernel", "dense_1/kernel", "dense_1/bias"]
    page.get_by_role("button", name="Use in the experiment").click()
    page.wait_for_url("**/edit#mesh")
    experiment.refresh_from_db()
    draft: Any = experiment.draft
    assert draft["mesh"]["shape"] == [2, 4]
    assert [rule["match"] for rule in draft["mesh"]["layout"]] == [
        "dense_2/kernel",
        "dense_1/kernel",
        "dense_1/bias",
    ]


def test_going_back_in_the_browser_undoes_a_change(
    people: People, experiment: Experiment, open_as: Open
) -> None:
    page = open_as(people.owner, f"/mesh?experiment={experiment.pk}")
    page.get_by_role("button", name="Last dimension").click()
    drawn(page, "The plan has replaced the axes and rules")
    page.go_back()
    drawn(page, "No rules: every device has a copy of every variable.")


def test_unsaved_changes_of_the_form_come_along_to_the_designer_and_back(
    people: People, experiment: Experiment, open_as: Open
) -> None:
    page = open_as(people.owner, f"/p/yard/experiments/{experiment.pk}/edit#model")
    expect(page.locator("#experiment-form[data-verdict=ok]")).to_be_attached()
    page.locator('[id="at/spec/model/args/units"]').fill("96")
    page.get_by_role("navigation", name="Steps").get_by_role("link", name="Mesh").click()
    page.locator('[id="at/spec/mesh"]').check()
    page.get_by_role("button", name="Open the mesh designer").click()
    page.wait_for_url("**/mesh?experiment=*")
    drawn(page, "dense_2/kernel of shape [96, 96]")
    page.get_by_role("link", name="Back to the form").click()
    page.wait_for_url("**/edit#mesh")
    expect(page.locator('[id="at/spec/model/args/units"]')).to_have_value("96")
