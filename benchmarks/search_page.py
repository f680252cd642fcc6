"""Measures the page of a search with ten thousand trials in Chromium: first paint and each interaction.

Run `python -m benchmarks.search_page [--trials 10000] [--repeats 5]`. It creates its own database, starts the
real web server and prints, for the table and every chart, the median and the maximum time from a click, key
or drag to the frame that shows its effect (goal: 100 ms). In the grid of charts, the one in use is drawn in
that frame and the others on the screen follow one by one; "all charts follow" is the time until the last.
First paint is the time from the navigation until the first row of trials and the first chart are visible.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
FIRST_ROW = "document.querySelector('ty-trials tbody tr[data-trial]')"
FIRST_CHART = "document.querySelector('ty-history canvas')"

PAINTED = f"""() => new Promise(done => {{
    const look = () => {FIRST_ROW} && {FIRST_CHART}
        ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
        : requestAnimationFrame(look);
    look();
}})"""
WATCH = Path(__file__).with_suffix(".js").read_text()
BOX, CHIP, SHARED_CHIP = (
    "ty-trials tbody input",
    "ty-trials .ty-chip button",
    ".ty-chart-shared .ty-chip button",
)
LOG = ".ty-enlarged .ty-chart-controls [aria-label$=logarithmic]"
GOAL_MS = 100.0  # perceived as immediate

# By chart: whether filters and selections change it. Importance uses all trials; curves use the selected ones
# or the best.
CHARTS = {
    **dict.fromkeys(("parallel", "slice", "contour", "heat", "rank", "pareto", "timeline", "curves"), True),
    "importance": False,
}


@contextmanager
def server(environment: dict[str, str]) -> Iterator[str]:
    import httpx2

    from tests.browser.conftest import free_port

    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(port)]
    flags = ["--ws", "websockets-sansio", "--lifespan", "off", "--log-level", "warning"]
    process = subprocess.Popen([*command, *flags], cwd=ROOT, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                if httpx2.get(f"{address}/healthz", trust_env=False).is_success:
                    break
            except httpx2.TransportError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=15)


def seed(trials: int) -> tuple[int, str, str]:
    """Return the job's id, and the cookie of a user who may see it."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from django.conf import settings

    from jobs.models import Job, User
    from tests.people import browser_of, make_people
    from tests.seeded import seed_search

    job = Job.objects.first()
    if job is None:
        people = make_people()
        job = seed_search(people.project, by=people.owner, trials=trials)
    owner = User.objects.get(pk=job.created_by_id)
    name = settings.SESSION_COOKIE_NAME
    return job.pk, name, browser_of(owner).cookies[name].value


class Took(NamedTuple):
    """Milliseconds of wall time, and of work of the page's main thread."""

    wall: float
    work: float


class Stopwatch:
    """Times real clicks, keys and drags on a page."""

    def __init__(self, page: Any) -> None:
        self.times: dict[str, list[Took]] = {}
        self._page = page
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def time(self, name: str, act: Callable[[], object], *, redraws: bool = False) -> None:
        """Time an action until the frame that shows its effect, including the open chart if it `redraws`."""
        self._page.evaluate("bench.begin()")
        worked = self._worked()
        act()
        wall = float(self._page.evaluate("redraws => bench.took(redraws)", redraws))
        self.note(name, Took(wall, self._worked() - worked))

    def follow(self, name: str, act: Callable[[], object]) -> None:
        """Time an action until every chart on the screen shows its effect."""
        self._page.evaluate("bench.begin()")
        worked = self._worked()
        act()
        wall = float(self._page.evaluate("bench.followed()"))
        self.note(name, Took(wall, self._worked() - worked))

    def first_paint(self, name: str, address: str) -> None:
        """Time a navigation until the page's trials and chart are visible."""
        before = self._worked()
        self._page.goto(address, wait_until="commit")
        wall = float(self._page.evaluate(PAINTED))
        after = self._worked()  # a navigation may reset the counter
        self.note(name, Took(wall, after - before if after >= before else after))

    def note(self, name: str, took: Took) -> None:
        self.times.setdefault(name, []).append(took)

    def _worked(self) -> float:
        metrics = self._devtools.send("Performance.getMetrics")["metrics"]
        return next(1000 * float(entry["value"]) for entry in metrics if entry["name"] == "TaskDuration")


def measure(page: Any, address: str, job: int, repeats: int) -> dict[str, list[Took]]:
    watch = Stopwatch(page)
    for _ in range(repeats):
        watch.first_paint("first paint, overview", f"{address}/jobs/{job}")
        _use_table(page, watch)
        watch.first_paint("first paint, charts", f"{address}/jobs/{job}?tab=charts")
        _use_grid(page, watch)
        _use_history(page, watch)
        for chart, follows in CHARTS.items():
            _use_chart(page, watch, chart, follows=follows)
    return watch.times


def _use_table(page: Any, watch: Stopwatch) -> None:
    for key in ("score", "h.units"):
        watch.time(f"table: sort by {key}", _click(page, f'[data-key="{key}"]'))
    watch.time("table: next page", _click(page, "ty-trials .ty-pager button:last-child"))
    watch.time("table: pick a trial", _click(page, BOX))
    watch.time("table: filter", _filter(page, "score", "0.9", ""))
    watch.time("table: remove a filter", _click(page, CHIP))
    watch.time("table: next trial by key", lambda: page.keyboard.press("j"))


def _use_grid(page: Any, watch: Stopwatch) -> None:
    """Use the page while all charts are of the same size, and wait between actions until all are drawn."""
    _settle(page)
    watch.time("grid: filter", _filter(page, "h.units", "64", "128"))
    _settle(page)
    watch.time("grid: remove a filter", _click(page, CHIP))
    _settle(page)
    watch.time("grid: pick a trial", _click(page, BOX))
    page.locator(BOX).first.click()
    plot = page.locator("ty-history .u-over")
    watch.time("grid: brush", _brushing(page, plot))
    _settle(page)
    watch.time("grid: remove the brush, at once", _click(page, SHARED_CHIP))
    watch.time("grid: brush again, at once", _brushing(page, plot))
    watch.follow("grid: all charts follow", _click(page, SHARED_CHIP))


def _use_history(page: Any, watch: Stopwatch) -> None:
    page.locator(".ty-chart-nav a[href*='chart=history']").click()
    _settle(page)
    watch.time("history: filter", _filter(page, "h.units", "64", "128"))
    watch.time("history: remove a filter", _click(page, CHIP))
    watch.time("history: pick a trial", _click(page, BOX))
    page.locator(BOX).first.click()
    watch.time("history: brush", _brushing(page, page.locator("ty-history .u-over")))
    page.locator(CHIP).first.click()
    page.locator(".ty-chart-nav a").first.click()


def _settle(page: Any) -> None:
    """Wait until every chart on the screen is drawn."""
    page.wait_for_function("!document.querySelector('.ty-tile[aria-busy=true]')")
    page.wait_for_timeout(300)


def _brushing(page: Any, plot: Any) -> Callable[[], object]:
    """Return a function that drags across a plot."""
    box = _seen(plot)
    middle = box["y"] + box["height"] / 2
    across = [(box["x"] + share * box["width"], middle) for share in (0.3, 0.6)]
    return lambda: _drag(page, *across)


def _use_chart(page: Any, watch: Stopwatch, chart: str, *, follows: bool) -> None:
    address = f".ty-chart-nav a[href*='chart={chart}']"
    page.locator(address).click()
    # the chart has loaded its data from the server, which is cached from now on
    page.wait_for_function("document.querySelector('.ty-enlarged .ty-chart-body canvas')")
    page.locator(".ty-chart-nav a").first.click()
    watch.time(f"{chart}: open", _click(page, address), redraws=True)
    if chart == "parallel":
        box = _seen(page.locator(".ty-enlarged .ty-echart canvas").first)
        down = ((box["x"] + 48, box["y"] + share * box["height"]) for share in (0.3, 0.6))
        watch.time(f"{chart}: brush", lambda: _drag(page, *down, rest=500))
        watch.time(f"{chart}: remove a filter", _click(page, CHIP), redraws=True)
    axis = page.locator(".ty-enlarged .ty-chart-controls select").first
    if axis.count():
        axis.focus()
        watch.time(f"{chart}: other axis", lambda: page.keyboard.press("ArrowDown"), redraws=True)
        page.keyboard.press("ArrowUp")
    _settle(page)  # another axis may bring other controls
    if page.locator(LOG).count():
        watch.time(f"{chart}: logarithm", _click(page, LOG), redraws=True)
        page.locator(LOG).first.click()
    watch.time(f"{chart}: filter", _filter(page, "h.units", "64", "128"), redraws=follows)
    watch.time(f"{chart}: remove a filter", _click(page, CHIP), redraws=follows)
    watch.time(f"{chart}: pick a trial", _click(page, BOX), redraws=follows)
    page.locator(BOX).first.click()
    if chart != "curves":
        page.locator(".ty-enlarged .ty-echart").focus()
        watch.time(f"{chart}: next item by key", lambda: page.keyboard.press("ArrowRight"))


def _click(page: Any, selector: str) -> Callable[[], object]:
    """Locate an element before the click, so that only the click is timed."""
    box = _seen(page.locator(selector).first)
    return lambda: page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def _filter(page: Any, column: str, low: str, high: str) -> Callable[[], object]:
    """Fill in the form; return a function that clicks its button."""
    form = page.locator("form.ty-filters")
    form.get_by_label("Filter by").select_option(column)
    form.locator("[name=from]").fill(low)
    form.locator("[name=to]").fill(high)
    return _click(page, "form.ty-filters button")


def _seen(locator: Any) -> dict[str, float]:
    """Scroll to an element and return its position in the window."""
    locator.scroll_into_view_if_needed()
    return dict(locator.bounding_box())


def _drag(page: Any, start: tuple[float, float], end: tuple[float, float], rest: int = 0) -> None:
    """Drag, then wait `rest` milliseconds for the chart's own delayed update."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()
    page.wait_for_timeout(rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--home", help="keep the database there, and use it again")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with nullcontext(options.home) if options.home else tempfile.TemporaryDirectory() as home:
        Path(home).mkdir(exist_ok=True)
        os.environ |= {
            "TRAINYARD_HOME": home,
            "DJANGO_SETTINGS_MODULE": "webapp.settings.test",
            "TRAINYARD_DATABASE_URL": f"sqlite:///{home}/bench.sqlite3",
            "DJANGO_ALLOW_ASYNC_UNSAFE": "true",
        }
        import django

        django.setup()
        job, name, value = seed(options.trials)
        from playwright.sync_api import sync_playwright

        chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        with server(dict(os.environ)) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)
            context.add_cookies([{"name": name, "value": value, "url": address}])
            context.add_init_script(WATCH)
            times = measure(context.new_page(), address, job, options.repeats)
            browser.close()
    for what, seconds in times.items():
        walls, works = zip(*seconds, strict=True)
        is_whole = "paint" in what or "all charts" in what  # more than the response to an interaction
        late = "  LATE" if not is_whole and statistics.median(walls) > GOAL_MS else ""
        print(
            f"{what:32} median {statistics.median(walls):6.0f} ms  worst {max(walls):6.0f} ms"
            f"  its thread worked {statistics.median(works):6.0f} ms{late}"
        )


if __name__ == "__main__":
    main()
