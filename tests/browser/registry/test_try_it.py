"""The *Try it* form for a version that takes a table's columns."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.looking import NARROW, Look
from tests.registry.conftest import make_yard

Open = Callable[..., Page]


def test_a_text_has_a_line_of_its_own(open_as: Open, look: Look, tmp_path: Path) -> None:
    installation = make_yard(tmp_path)
    version = installation.live()
    tensor = {"name": "input", "dtype": "float32", "shape": [3]}
    columns = [{"name": "age", "type": "number"}, {"name": "comment", "type": "text"}]
    version.signature = {"inputs": [tensor], "outputs": [tensor], "columns": columns}
    version.save(update_fields=["signature"])
    page = open_as(installation.viewer, "/models/digits/versions/1?tab=try")

    def widths() -> tuple[float, float]:
        text, form = page.get_by_label("comment").bounding_box(), page.locator(".ty-fields").bounding_box()
        assert text is not None
        assert form is not None
        return text["width"], form["width"]

    text, form = widths()
    assert text >= min(form, 700)
    look(page, "try-text")
    page.set_viewport_size(NARROW)
    text, form = widths()
    assert text == form
