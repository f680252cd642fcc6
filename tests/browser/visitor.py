"""A user in a browser, who clicks through the navigation and checks the pages."""

from dataclasses import dataclass
from re import Pattern

from playwright.sync_api import Locator, Page, expect

from tests.browser.looking import Look

CHART_LOADING = ":is(ty-curves, ty-history):not(:has(.ty-chart-note:not(:empty))), .ty-loading"
LOG_LOADING = "ty-log:not(:has([data-count]:not(:empty)))"


@dataclass
class Visitor:
    """A logged-in person with a separate page."""

    page: Page
    look: Look

    def log_in(self, link: str, name: str) -> None:
        """Log in by a one-time link."""
        self.page.goto(link)
        self.page.get_by_role("button", name=f"Log in as {name}").click()
        expect(self.page.get_by_role("navigation", name="Main")).to_be_visible()

    def go(self, entry: str, *links: str | Pattern[str]) -> None:
        """Click an entry of the navigation, then links on the pages it leads to."""
        self.follow(self.page.get_by_role("navigation", name="Main").get_by_role("link", name=entry))
        for name in links:
            self.follow(self.page.get_by_role("main").get_by_role("link", name=name, exact=True).first)

    def follow(self, link: Locator) -> None:
        """Click a link and wait for the page it leads to."""
        with self.page.expect_navigation():
            link.click()

    def tab(self, name: str) -> None:
        """Open a tab on this page."""
        self.page.locator(".ty-tabs").get_by_role("link", name=name, exact=True).click()
        expect(self.page.locator(".ty-tabs .active")).to_have_text(name)

    def press(self, name: str) -> None:
        """Click a button."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def send(self, name: str) -> None:
        """Click the button of a form and wait for the page it leads to."""
        self.follow(self.page.get_by_role("button", name=name, exact=True))

    def confirm(self, verb: str) -> None:
        """Confirm in the dialog that a button has opened."""
        self.page.get_by_role("dialog").get_by_role("button", name=verb).click()

    def card(self, name: str) -> Locator:
        """Return the page's region by its name."""
        return self.page.get_by_role("region", name=name, exact=True)

    def check_page(self, name: str) -> None:
        """Check this page in both themes and widths, once its charts and log are loaded."""
        self.until_drawn()
        self.look(self.page, f"flow-{name}")

    def until_drawn(self) -> None:
        """Wait until the charts and the log of this page are loaded."""
        expect(self.page.locator(f"{CHART_LOADING}, {LOG_LOADING}")).to_have_count(0)

    def mark(self) -> None:
        """Set a mark that a reload removes."""
        self.page.evaluate("window.unbroken = true")

    def assert_not_reloaded(self) -> None:
        """Check that the page has not been reloaded since `mark`."""
        assert self.page.evaluate("window.unbroken === true"), "the page was reloaded"
