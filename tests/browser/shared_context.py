"""One browser context for the tests of a web server: its renderer process and its cache serve them all."""

from playwright.sync_api import Browser, BrowserContext, Error

from tests.browser.looking import WIDE


def new_context(browser: Browser, address: str) -> BrowserContext:
    """Return a context whose pages may be opened by relative addresses."""
    return browser.new_context(
        base_url=address, viewport=WIDE, reduced_motion="reduce", ignore_https_errors=True
    )


class SharedContext:
    """Lends a context to one test after the other, each time without cookies and stored data."""

    def __init__(self, browser: Browser, address: str) -> None:
        self._browser, self._address = browser, address
        self._open()

    def _open(self) -> None:
        self._context = new_context(self._browser, self._address)
        # Without a page of this server, the renderer process would end after each test.
        self._lasting = self._context.new_page()
        self._lasting.goto("/healthz")
        self._session = self._context.new_cdp_session(self._lasting)
        self._is_lent = False

    def lend(self) -> BrowserContext | None:
        """Return the context, or None if it is lent: two people need a context each."""
        if self._is_lent:
            return None
        self._is_lent = True
        assert self._context.pages == [self._lasting], "a page of an earlier test is open"
        # The answer to a request of a page that was being closed may have set its cookies after `take_back`.
        self._context.clear_cookies()
        return self._context

    def take_back(self) -> None:
        """Close the pages, and delete cookies and stored data; the cache of the server's files stays."""
        try:
            for page in self._context.pages:
                if page is not self._lasting:
                    page.close()
            self._session.send("Storage.clearDataForOrigin", {"origin": self._address, "storageTypes": "all"})
        except Error:  # the renderer has crashed: the next test must not find its data
            self._context.close()
            self._open()
        self._is_lent = False

    def close(self) -> None:
        self._context.close()
