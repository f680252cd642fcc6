"""The page of a search with ten thousand trials, in Chromium: first paint, and what each interaction takes.

Run `python -m benchmarks.search_page [--trials 10000] [--repeats 5]`. It seeds a database of its own, starts
the real web server and prints medians. First paint is the time from the navigation until the first row of
trials and the first chart stand on the screen; an interaction ends with the frame that shows its effect.
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
DRAWN = "document.querySelector('.ty-echart')?.parentElement.dataset.drawn"

PAINTED = f"""() => new Promise(done => {{
    const look = () => {FIRST_ROW} && {FIRST_CHART}
        ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
        : requestAnimationFrame(look);
    look();
}})"""
AFTER = """async act => {
    const begin = performance.now();
    await (0, eval)(act);
    await new Promise(requestAnimationFrame);
    await new Promise(done => setTimeout(done));
    return performance.now() - begin;
}"""


def view(call: str) -> str:
    """Return JavaScript that does to the view of the page what a person's click leads to."""
    return f"document.querySelector('ty-trials').view.{call}"


INTERACTIONS = {
    "sort by score": "document.querySelector('[data-key=score]').click()",
    "sort by a hyperparameter": "document.querySelector('[data-key=\"h.units\"]').click()",
    "next page": view("turnTo(2)"),
    "filter by score": view("filter('score', {low: 0.9, high: Infinity})"),
    "brush the history": view("filter('number', {low: 2000, high: 6000})"),
    "clear the filters": view("clearFilters()"),
    "pick a trial": "document.querySelector('ty-trials tbody input').click()",
}
CHARTS = ("parallel", "slice", "contour", "heat", "rank", "pareto", "timeline")
BRUSH = view("filter('h.units', {low: 64, high: 128})")
SWITCH = {
    "parallel": view("setAxis('metric', 'm.val_loss')"),
    "slice": view("setAxis('x', 'h.learning_rate')"),
    "contour": view("setAxis('x', 'h.learning_rate')"),
    "heat": view("setAxis('x', 'h.learning_rate')"),
    "rank": view("setAxis('x', 'h.learning_rate')"),
    "pareto": view("setAxis('y', 'm.latency')"),
}


def redrawn(act: str) -> str:
    """Return JavaScript that does `act` and waits until the chart was drawn once more."""
    return f"""(async () => {{
        const before = {DRAWN};
        {act};
        while ({DRAWN} === before) await new Promise(requestAnimationFrame);
    }})()"""


@contextmanager
def server(environment: dict[str, str]) -> Iterator[str]:
    import httpx

    from tests.browser.conftest import free_port

    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(port)]
    flags = ["--ws", "websockets-sansio", "--lifespan", "off", "--log-level", "warning"]
    process = subprocess.Popen([*command, *flags], cwd=ROOT, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                if httpx.get(f"{address}/healthz", trust_env=False).is_success:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=15)


def seed(trials: int) -> tuple[int, str, str]:
    """Return the job's id, and the cookie of somebody who may see it."""
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
    """Milliseconds: what a clock says, and what the page's main thread worked."""

    wall: float
    work: float


def measure(page: Any, address: str, job: int, repeats: int) -> dict[str, list[Took]]:
    times: dict[str, list[Took]] = {}
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        found = devtools.send("Performance.getMetrics")["metrics"]
        return next(1000 * float(entry["value"]) for entry in found if entry["name"] == "TaskDuration")

    def timed(name: str, run: Callable[[], float]) -> None:
        before = worked()
        wall = run()
        after = worked()  # a navigation may begin to count anew
        times.setdefault(name, []).append(Took(wall, after - before if after >= before else after))

    for _ in range(repeats):
        timed("first paint, overview", lambda: opened(page, f"{address}/jobs/{job}"))
        for name, act in INTERACTIONS.items():
            timed(name, lambda act=act: page.evaluate(AFTER, act))  # type: ignore[misc]
        timed("first paint, charts", lambda: opened(page, f"{address}/jobs/{job}?tab=charts"))
        for chart in CHARTS:
            page.evaluate(f"document.querySelector('ty-trials').view.show('{chart}')")
            page.wait_for_function(f"Number({DRAWN}) > 0")
            if act := SWITCH.get(chart):
                timed(f"{chart}: switch an axis", lambda act=act: page.evaluate(AFTER, redrawn(act)))  # type: ignore[misc]
            timed(f"{chart}: filter", lambda: page.evaluate(AFTER, redrawn(BRUSH)))
            page.evaluate(redrawn(view("clearFilters()")))
            page.evaluate("document.querySelector('ty-trials').view.show('history')")
    return times


def opened(page: Any, address: str) -> float:
    """Load a page; return the milliseconds until its trials and its chart stood on the screen."""
    page.goto(address, wait_until="commit")
    return float(page.evaluate(PAINTED))


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
            times = measure(context.new_page(), address, job, options.repeats)
            browser.close()
    for what, found in times.items():
        wall, work = (statistics.median(each) for each in zip(*found, strict=True))
        print(
            f"{what:36} {wall:8.0f} ms, of which its thread worked {work:8.0f} ms  (median of {len(found)})"
        )


if __name__ == "__main__":
    main()
