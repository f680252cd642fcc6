"""What is looked at on a page: four pictures (light, dark, wide, narrow) and what axe finds in both themes.

Done in one go, because each change of theme or width styles the whole page anew. The pictures are taken of a
screen as tall as the page: a screenshot beyond the screen lays the page out twice for each of them.
"""

import base64
from collections.abc import Callable
from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import CDPSession, Page, ViewportSize

SCREENS = Path(__file__).resolve().parents[2] / "test-results" / "screens"
WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}
Look = Callable[[Page, str], None]
"""Have a page photographed under a name, and judged."""

SHOW = """async theme => {
    document.documentElement.dataset.bsTheme = theme;
    document.dispatchEvent(new CustomEvent("ty:theme", {detail: theme}));
    await document.fonts.ready;
    for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
    const {scrollHeight} = document.documentElement;
    if (scrollHeight <= innerHeight) return null;
    return {x: 0, y: 0, width: innerWidth, height: scrollHeight, scale: 1};
}"""
"""Two frames: charts measure themselves in the first, are drawn in the second.

Returns the whole page's rectangle if the screen cuts it."""

JUDGE = """async rules => {
    const options = {resultTypes: ["violations"]};
    if (rules) options.runOnly = rules;
    const {violations} = await axe.run(options);
    return violations
        .filter(({impact}) => impact === "serious" || impact === "critical")
        .flatMap(({id, help, nodes}) => nodes.slice(0, 4).map(
            node => `${id} (${help}): ${node.target} ${node.failureSummary ?? ""}`));
}"""
OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules whose findings another theme can change."""


def look_at(page: Page, name: str) -> None:
    """Photograph a page in both themes and widths, and have axe judge it in both themes.

    Raises:
        AssertionError: it is wider than the screen, or axe has a serious finding.
    """
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.wait_for_load_state()
    camera = page.context.new_cdp_session(page)
    grow(page, WIDE)
    photograph(page, camera, f"{name}-wide", "light")
    judge(page, "light", None)
    photograph(page, camera, f"{name}-wide", "dark")
    judge(page, "dark", OF_COLOURS)
    assert_fits(page, name)
    page.set_viewport_size(NARROW)
    grow(page, NARROW)
    photograph(page, camera, f"{name}-narrow", "dark")
    photograph(page, camera, f"{name}-narrow", "light")
    assert_fits(page, name)
    camera.detach()
    page.set_viewport_size(WIDE)


def grow(page: Page, size: ViewportSize) -> None:
    """Make the screen as tall as the page that stands on it, unless the page then grows along."""
    height = tall(page)
    if height > size["height"]:
        page.set_viewport_size({"width": size["width"], "height": height})
        if tall(page) > height:
            page.set_viewport_size(size)


def tall(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


def photograph(page: Page, camera: CDPSession, name: str, theme: str) -> None:
    options: dict[str, object] = {"format": "png", "optimizeForSpeed": True}
    if clip := page.evaluate(SHOW, theme):
        options |= {"captureBeyondViewport": True, "clip": clip}
    taken = camera.send("Page.captureScreenshot", options)
    (SCREENS / f"{name}-{theme}.png").write_bytes(base64.b64decode(taken["data"]))


def judge(page: Page, theme: str, rules: list[str] | None) -> None:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = [f"{theme}: {line}" for line in page.evaluate(JUDGE, rules)]
    assert not found, "\n".join(found)


def assert_fits(page: Page, name: str) -> None:
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0, f"{name} is {overflow} px wider than a screen of {page.evaluate('innerWidth')} px"
