"""Measures the first paint of pages on a second visit in Chromium, beside another checkout.

Run `python -m benchmarks.first_paint --other FOLDER --home HOME [--user ada] [--visits 9] PATH ...`; the
options are those of `benchmarks.pages`. A browser visits each page of both servers in alternation, after a
first visit that fills its cache. For each page it prints medians in milliseconds, here and there: from the
navigation until the first byte of the answer, until the first paint with contents, and the work of the page's
main thread until the page has loaded; then the ratio of the first paints.
"""

import http
import shutil
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.pages import Server, parser_of_two, serve_both

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
TIMES = """() => {
    const [page] = performance.getEntriesByType('navigation')
    const [paint] = performance.getEntriesByName('first-contentful-paint')
    return [page.responseStart, paint?.startTime ?? NaN]
}"""


class Visit(NamedTuple):
    """Milliseconds of one visit."""

    answer: float
    paint: float
    work: float


class Visitor:
    """A browser's window with the pages of one server."""

    def __init__(self, browser: Any, server: Server) -> None:
        self._address = f"http://127.0.0.1:{server.port}"
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        names = [part.split("=", 1) for part in server.cookie.split("; ")]
        context.add_cookies([{"name": name, "value": value, "url": self._address} for name, value in names])
        self._page = context.new_page()
        self._devtools = context.new_cdp_session(self._page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def visit(self, path: str) -> Visit:
        """Open a page from an empty one.

        Raises:
            ValueError: the server shows another page, such as the one to log in.
        """
        self._page.goto("about:blank")
        before = self._worked()
        answer = self._page.goto(self._address + path, wait_until="load")
        if answer.status != http.HTTPStatus.OK or answer.request.redirected_from is not None:
            raise ValueError(f"{path} is no page: {answer.status} {answer.url}")
        self._page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        after = self._worked()  # a navigation may reset the counter
        return Visit(*self._page.evaluate(TIMES), after - before if after >= before else after)

    def _worked(self) -> float:
        metrics = self._devtools.send("Performance.getMetrics")["metrics"]
        return next(1000 * float(entry["value"]) for entry in metrics if entry["name"] == "TaskDuration")


def compare(here: Visitor, there: Visitor, path: str, visits: int) -> str:
    """Return a line with the times of a page and the ratio of the first paints."""
    rows: dict[Visitor, list[Visit]] = {here: [], there: []}
    for number in range(visits + 1):
        for visitor in (here, there) if number % 2 else (there, here):
            visit = visitor.visit(path)
            if number:
                rows[visitor].append(visit)
    mine, other = (Visit(*map(statistics.median, zip(*rows[visitor], strict=True))) for visitor in rows)
    ratios = [a.paint / b.paint for a, b in zip(rows[here], rows[there], strict=True)]
    pairs = "  ".join(f"{a:6.0f} {b:6.0f}" for a, b in zip(mine, other, strict=True))
    return f"{path:34} {pairs}  {statistics.median(ratios):5.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the comparison of each page."""
    from playwright.sync_api import sync_playwright

    parser = parser_of_two(__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH")
    parser.add_argument("--visits", type=int, default=9)
    options = parser.parse_args(arguments)
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with serve_both(options.other, options.home, options.user) as servers, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        visitors = [Visitor(browser, server) for server in servers]
        print(f"{'page':34} {'first byte':>13}  {'first paint':>13}  {'thread worked':>13}  ratio")
        for path in options.paths:
            print(compare(*visitors, path, options.visits), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
