"""Checks a page with axe, and that it fits a wide and a narrow screen.

Contrasts are computed from the tokens of the style sheets (`tests/web/styles/test_contrast.py`). They took
most of the time of axe, and it checks nothing else that depends on the theme.

`TRAINYARD_SCREENSHOTS=1` also takes four screenshots (light, dark, wide, narrow) into `test-results/screens`,
which doubles the time. All is done together, because each change of theme or width restyles the page. The
viewport is as tall as the page, because a screenshot beyond the viewport computes the layout twice.
"""

import base64
import os
from collections.abc import Callable
from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize

SCREENS = Path(__file__).resolve().parents[2] / "test-results" / "screens"
WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}
SCREENSHOTS = os.environ.get("TRAINYARD_SCREENSHOTS") == "1"
Look = Callable[[Page, str], None]
"""Checks a page, and takes screenshots of it under a name if they are asked for."""

SET_THEME = """theme => {
    const {dataset} = document.documentElement;
    if (dataset.bsTheme === theme) return;
    dataset.bsTheme = theme;
    document.dispatchEvent(new CustomEvent("ty:theme", {detail: theme}));
}"""
UNTIL_DRAWN = """async () => {
    await document.fonts.ready;
    for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
    const {scrollHeight} = document.documentElement;
    if (scrollHeight <= innerHeight) return null;
    return {x: 0, y: 0, width: innerWidth, height: scrollHeight, scale: 1};
}"""
"""Waits for two frames: charts measure themselves in the first, are drawn in the second.

Returns the whole page's rectangle if the screen cuts it."""

PREPARE_AXE = f"""{AXE_SCRIPT};
axe.configure({{
    noHtml: true,
    rules: axe._audit.rules
        .filter(({{id, impact}}) => id === "color-contrast" || impact === "minor" || impact === "moderate")
        .map(({{id}}) => ({{id, enabled: false}})),
}});"""
"""Only serious findings are read, and a rule with an impact of its own has no others.

Without `noHtml` axe serializes each element that it checks, with everything inside it.
"""
RUN_AXE = """async () => {
    const {violations} = await axe.run({resultTypes: ["violations"]});
    return violations
        .filter(({impact}) => impact === "serious" || impact === "critical")
        .flatMap(({id, help, nodes}) => nodes.slice(0, 4).map(
            node => `${id} (${help}): ${node.target} ${node.failureSummary ?? ""}`));
}"""


def look_at(page: Page, name: str) -> None:
    """Check a page with axe, that it is drawn in both themes, and its width on a wide and a narrow screen.

    Raises:
        AssertionError: it is wider than the screen, or axe has a serious finding.
    """
    page.wait_for_load_state()
    grow(page, WIDE)
    show(page, name, WIDE, "light")
    check_accessibility(page)
    show(page, name, WIDE, "dark")
    assert_fits(page, name)
    if SCREENSHOTS:
        page.set_viewport_size(NARROW)
        grow(page, NARROW)
        show(page, name, NARROW, "dark")
    # Before the change of the width, so that charts are drawn once for both.
    page.evaluate(SET_THEME, "light")
    page.set_viewport_size(NARROW)
    show(page, name, NARROW, "light")
    assert_fits(page, name)
    page.set_viewport_size(WIDE)


def grow(page: Page, size: ViewportSize) -> None:
    """Make the viewport as tall as the page, unless the page then grows too."""
    height = page_height(page)
    if height > size["height"]:
        page.set_viewport_size({"width": size["width"], "height": height})
        if page_height(page) > height:
            page.set_viewport_size(size)


def page_height(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


def show(page: Page, name: str, size: ViewportSize, theme: str) -> None:
    """Switch to a theme, and take a screenshot if they are asked for."""
    page.evaluate(SET_THEME, theme)
    clip = page.evaluate(UNTIL_DRAWN)
    if not SCREENSHOTS:
        return
    options: dict[str, object] = {"format": "png", "optimizeForSpeed": True}
    if clip:
        options |= {"captureBeyondViewport": True, "clip": clip}
    camera = page.context.new_cdp_session(page)
    taken = camera.send("Page.captureScreenshot", options)
    camera.detach()
    SCREENS.mkdir(parents=True, exist_ok=True)
    kind = "wide" if size == WIDE else "narrow"
    (SCREENS / f"{name}-{kind}-{theme}.png").write_bytes(base64.b64decode(taken["data"]))


def check_accessibility(page: Page) -> None:
    if not page.evaluate("'axe' in window"):
        page.evaluate(PREPARE_AXE)
    violations = page.evaluate(RUN_AXE)
    assert not violations, "\n".join(violations)


def assert_fits(page: Page, name: str) -> None:
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0, f"{name} is {overflow} px wider than a screen of {page.evaluate('innerWidth')} px"
