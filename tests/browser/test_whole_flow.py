"""Two users go through the whole flow by mouse and keyboard; every page is checked.

Ada uploads data, submits an experiment, watches it without a reload and requests its promotion.
Grace finds the request, approves it by keyboard, and later rolls a second version back.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.conftest import PAGE_TIMEOUT, Watch
from tests.browser.looking import WIDE, Look
from tests.browser.visitor import Visitor
from tests.browser.walk.administering import (
    administer,
    create_and_revoke_a_token,
    drain_and_enable,
    look_at_a_busy_yard,
)
from tests.browser.walk.building import build_and_submit, look_at_bundled_data, upload_data
from tests.browser.walk.releasing import (
    approve,
    approve_by_keyboard,
    ask_for_promotion,
    expect_served,
    look_at_endpoints,
    look_at_models,
    look_at_the_version,
    request_promotion,
    roll_back,
    try_it,
)
from tests.browser.walk.training import (
    look_at_the_experiment,
    look_at_the_job,
    watch_it_end,
    watch_the_log_grow,
    watch_trials_come,
)
from tests.flow.yard import RunningYard, open_yard

pytestmark = [pytest.mark.flow, pytest.mark.timeout(5400)]

PATIENCE = 300_000  # ms, for each wait on a shared machine


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningYard]:
    """Broker, web, scheduler, worker and prediction server, with the two people in one project."""
    with open_yard(tmp_path_factory.mktemp("seen") / "home") as made:
        made.open()
        yield made


@dataclass
class Cast:
    """The users by name, each with a browser context of their own."""

    enter: Callable[[str], Visitor]
    met: dict[str, Visitor] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Visitor:
        if name not in self.met:
            self.met[name] = self.enter(name)
        return self.met[name]


@pytest.fixture
def cast(yard: RunningYard, chromium: Browser, watch: Watch, look: Look) -> Iterator[Cast]:
    links: dict[str, str] = yard.call("tests.flow.people", "logins")
    contexts: list[BrowserContext] = []

    def enter(name: str) -> Visitor:
        context = chromium.new_context(base_url=yard.urls["web"], viewport=WIDE, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watch.follow(page)
        visitor = Visitor(page, look)
        visitor.log_in(links[name], name)
        return visitor

    expect.set_options(timeout=PATIENCE)
    yield Cast(enter)
    expect.set_options(timeout=PAGE_TIMEOUT)
    for context in contexts:
        context.close()
    watch.assert_quiet()


def test_from_data_to_a_served_model_and_back(yard: RunningYard, cast: Cast) -> None:
    cast.ada.see("account")
    cast.ada.go("Home")
    cast.ada.see("home-new")
    upload_data(cast.ada)
    look_at_bundled_data(cast.ada)
    job = build_and_submit(cast.ada)
    watch_trials_come(cast.ada)
    watch_the_log_grow(cast.ada)
    cast.ada.tab("Overview")
    cast.ada.see("job-running")  # not before: the log grows only while the job runs
    look_at_a_busy_yard(cast.root)
    watch_it_end(cast.ada)
    look_at_the_job(cast.ada)
    look_at_the_experiment(cast.ada)

    versions = versions_of(yard, job)
    best, ensemble = versions["best"], versions["ensemble"]
    ask_for_promotion(cast.ada, best, "The best single model.")
    approve_by_keyboard(cast.grace, best)
    expect_served(cast.ada, best, generation=1)
    look_at_the_version(cast.ada, best)
    try_it(cast.ada, best)
    request_promotion(cast.ada, ensemble, "All of them together.")
    approve(cast.grace, ensemble)
    expect_served(cast.grace, ensemble, generation=2)
    look_at_endpoints(cast.grace)
    roll_back(cast.grace, best)
    look_at_models(cast.ada)

    create_and_revoke_a_token(cast.ada)
    administer(cast.root)
    drain_and_enable(cast.root)
    cast.ada.go("Home")
    cast.ada.see("home")


def versions_of(yard: RunningYard, job: int) -> dict[str, int]:
    found = yard.until_completed(job)["results"]["versions"]
    return {entry["what"]: int(entry["number"]) for entry in found}
