"""Two people walk the whole flow by mouse and keyboard on a yard that runs; every page is looked at.

Ada brings data, builds an experiment, watches it without a reload and asks for its best model to be served.
Grace finds the request, approves it by keyboard, and later takes a second version back.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import PAGE_PATIENCE, WIDE, Watch
from tests.browser.visitor import Check, Shoot, Visitor
from tests.flow.yard import PROJECT, RunningYard, open_yard

pytestmark = [pytest.mark.flow, pytest.mark.timeout(5400)]

MODEL = "flowers"
PATIENCE = 300_000  # ms, for any one thing on a machine that others share
JOB_PATIENCE = 1_800_000  # ms
SOME = re.compile(r"^[1-9]")
OF_SOME_POINTS = re.compile(r"^[1-9][\d,]* of [\d,]+ points")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningYard]:
    """Broker, web, scheduler, worker and prediction server, with the two people in one project."""
    with open_yard(tmp_path_factory.mktemp("seen") / "home") as made:
        made.open()
        yield made


@dataclass
class Cast:
    """Who takes part, by name, each in a browser of their own."""

    enter: Callable[[str], Visitor]
    met: dict[str, Visitor] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Visitor:
        if name not in self.met:
            self.met[name] = self.enter(name)
        return self.met[name]


@pytest.fixture
def cast(yard: RunningYard, chromium: Browser, watch: Watch, shoot: Shoot, axe: Check) -> Iterator[Cast]:
    links: dict[str, str] = yard.call("tests.flow.people", "logins")
    contexts: list[BrowserContext] = []

    def enter(name: str) -> Visitor:
        context = chromium.new_context(base_url=yard.urls["web"], viewport=WIDE, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watch.follow(page)
        visitor = Visitor(page, shoot, axe)
        visitor.log_in(links[name], name)
        return visitor

    expect.set_options(timeout=PATIENCE)
    yield Cast(enter)
    expect.set_options(timeout=PAGE_PATIENCE)
    for context in contexts:
        context.close()
    watch.assert_quiet()


def test_from_data_to_a_served_model_and_back(yard: RunningYard, cast: Cast) -> None:
    cast.ada.see("account")
    cast.ada.go("Home")
    cast.ada.see("home-new")
    bring_data(cast.ada)
    look_at_bundled_data(cast.ada)
    job = build_and_submit(cast.ada)
    watch_trials_come(cast.ada)
    watch_the_log_grow(cast.ada)  # first: that takes a job that still runs
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
    ask_for_promotion(cast.ada, ensemble, "All of them together.")
    approve(cast.grace, ensemble)
    expect_served(cast.grace, ensemble, generation=2)
    roll_back(cast.grace, best)
    look_at_models(cast.ada)

    keep_a_token_for_a_moment(cast.ada)
    administer(cast.root)
    drain_and_enable(cast.root)
    cast.ada.go("Home")
    cast.ada.see("home")


# Data


def bring_data(who: Visitor) -> None:
    who.go("Datasets", "Upload")
    page = who.page
    rows = "\n".join(f"{n % 7},{(n * n) % 11},{'high' if n % 7 > 3 else 'low'}" for n in range(84))
    page.get_by_label("File").set_input_files(
        {"name": "gauges.csv", "mimeType": "text/csv", "buffer": f"left,right,level\n{rows}\n".encode()}
    )
    page.get_by_label("Target").fill("level")
    who.see("dataset-upload")
    page.get_by_role("main").get_by_role("button", name="Upload").click()
    page.wait_for_url("**/datasets/gauges/**")
    expect(page.get_by_role("heading", name="Columns")).to_be_visible()
    expect(page.locator(".ty-title .ty-state")).to_have_text("ready")
    who.see("dataset-uploaded")


def look_at_bundled_data(who: Visitor) -> None:
    who.go("Datasets")
    expect(who.page.get_by_role("link", name="gauges", exact=True)).to_be_visible()
    who.see("datasets")
    who.go("Datasets", "iris")
    expect(who.page.get_by_role("heading", name="Class balance")).to_be_visible()
    who.see("dataset")


# The experiment


def build_and_submit(who: Visitor) -> int:
    page = who.page
    who.go("Experiments")
    who.follow(page.get_by_role("main").get_by_role("link", name="New experiment").first)
    settled(page)
    page.locator("[name=name]").fill("Flowers by hand")
    at(page, "/data/dataset").select_option(label="iris")
    page.keyboard.press("Alt+ArrowDown")
    at(page, "/model/args/units").fill("16")
    step(page, "Training")
    for name, value in (("epochs", "20"), ("batch_size", "16"), ("learning_rate", "0.02")):
        at(page, f"/fit/{name}").fill(value)
    step(page, "Search space")
    at(page, "/search/max_trials").fill("4")
    keep_one_hyperparameter(page)
    who.see("form-search-space")
    step(page, "Afterwards")
    at(page, "/after/retrain/top").fill("2")
    at(page, "/after/quantize").check()
    at(page, "/after/register").check()
    at(page, "/after/register/model").fill(MODEL)
    choose_what_to_register(page)
    step(page, "Review")
    settled(page)
    who.see("form-review")
    who.press("Submit")
    page.wait_for_url("**/jobs/*")
    return int(re.search(r"/jobs/(\d+)", page.url)[1])  # type: ignore[index]


def settled(page: Page) -> None:
    """Wait until the judge finds no fault in what stands there now."""
    expect(page.locator("#experiment-form[data-verdict=ok]")).to_be_attached()


def at(page: Page, pointer: str) -> Any:
    return page.locator(f'[id="at/spec{pointer}"]')


def step(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Steps").get_by_role("link", name=name).click()


def keep_one_hyperparameter(page: Page) -> None:
    """Take away all rows but the first, the network's width, and narrow that."""
    rows = page.locator('[data-row-of="space"]')
    while (count := rows.count()) > 1:
        rows.nth(count - 1).get_by_role("button", name="Remove", exact=True).press("Enter")
        expect(rows).to_have_count(count - 1)
    for name, value in (("min", "8"), ("max", "32"), ("step", "8")):
        at(page, f"/search/space/0/{name}").fill(value)


def choose_what_to_register(page: Page) -> None:
    kinds = at(page, "/after/register/what")
    for kind in ("best", "ensemble", "quantized"):
        kinds.get_by_label(kind, exact=True).check()


# The job, as it happens


def watch_trials_come(who: Visitor) -> None:
    who.mark()
    page = who.page
    expect(who.card("Trials").locator("tbody tr").first).to_be_visible(timeout=JOB_PATIENCE)
    expect(page.locator("ty-curves .ty-chart-note").first).to_have_text(OF_SOME_POINTS, timeout=JOB_PATIENCE)
    who.assert_not_reloaded()
    who.see("job-running")


def watch_the_log_grow(who: Visitor) -> None:
    page = who.page
    who.tab("Logs")
    who.mark()
    expect(page.locator("ty-log [data-count]")).to_have_text(SOME, timeout=JOB_PATIENCE)
    shown = page.locator("ty-log [data-count]").inner_text()
    expect(page.locator("ty-log [data-count]")).not_to_have_text(shown, timeout=JOB_PATIENCE)
    who.assert_not_reloaded()
    who.see("job-logs")


def watch_it_end(who: Visitor) -> None:
    page = who.page
    who.tab("Overview")
    who.mark()
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed", timeout=JOB_PATIENCE)
    expect(who.card("Candidates").locator("tbody tr")).not_to_have_count(0)
    expect(who.card("Trials").locator("tbody tr")).to_have_count(4)
    who.assert_not_reloaded()
    who.see("job")


def look_at_the_job(who: Visitor) -> None:
    page = who.page
    overview = page.url
    for tab in ("Trials", "Charts", "Evaluation", "System", "Artifacts", "Attempts", "Spec"):
        who.tab(tab)
        who.see(f"job-{tab.lower()}")
    page.goto(overview)
    who.follow(who.card("Trials").locator("a[data-open]").first)
    expect(page.locator("ty-curves .ty-chart-note").first).to_have_text(OF_SOME_POINTS)
    who.see("trial")
    who.go("Jobs")
    who.see("jobs")


def look_at_the_experiment(who: Visitor) -> None:
    who.go("Experiments")
    who.see("experiments")
    who.go("Experiments", "Flowers by hand")
    who.see("experiment")


def look_at_a_busy_yard(who: Visitor) -> None:
    """As far as it is still busy while these pictures are taken."""
    for name in ("Home", "Queue", "Workers"):
        who.go(name)
        who.see(f"{name.lower()}-busy")


def versions_of(yard: RunningYard, job: int) -> dict[str, int]:
    found = yard.until_completed(job)["results"]["versions"]
    return {entry["what"]: int(entry["number"]) for entry in found}


# Promotion


def ask_for_promotion(who: Visitor, version: int, why: str) -> None:
    page = who.page
    open_version(who, version)
    expect(page.locator(".ty-title .ty-state").first).not_to_have_text("validating")
    page.reload()
    who.see("version-candidate")
    page.get_by_label("Why").fill(why)
    page.get_by_role("button", name="Request promotion").click()
    who.mark()
    expect(who.card("Gates").locator(".card-header .ty-state")).to_have_text("pending")
    who.assert_not_reloaded()
    who.see("approval-asked")


def approve_by_keyboard(who: Visitor, version: int) -> None:
    page = who.page
    who.go("Home")
    who.see("home-approver")
    expect(page.get_by_role("navigation", name="Main").get_by_label("1 waiting")).to_be_visible()
    who.go("Approvals")
    who.see("approvals")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/approvals/*")
    who.see("approval")
    for box in page.locator("[name=accept]").all():
        box.focus()
        page.keyboard.press("Space")
    who.card("Decide").get_by_label("Comment").focus()
    page.keyboard.type("Gates passed; numbers hold.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect_released(who, version)
    who.see("approval-released")


def approve(who: Visitor, version: int) -> None:
    who.go("Approvals", re.compile("Request"))
    for box in who.page.locator("[name=accept]").all():
        box.check()
    who.press("Approve")
    expect_released(who, version)


def expect_released(who: Visitor, version: int) -> None:
    expect(who.page.get_by_role("heading", level=1)).to_have_text(f"{MODEL} v{version} to production")
    expect(who.card("Gates").locator(".card-header .ty-state")).to_have_text("released")


def open_version(who: Visitor, version: int) -> None:
    who.go("Models", MODEL, f"v{version}")


# Serving


def expect_served(who: Visitor, version: int, *, generation: int) -> None:
    who.go("Endpoints")
    who.see("endpoints")
    who.go("Endpoints", MODEL)
    expect(who.card("Replicas").locator(".card-header")).to_contain_text("all serve this generation")
    expect(who.page.locator(".ty-kpi", has_text="Production")).to_contain_text(f"v{version}")
    expect(who.page.locator(".ty-kpi", has_text="Generation")).to_contain_text(str(generation))
    who.see(f"endpoint-{generation}")


def look_at_the_version(who: Visitor, version: int) -> None:
    open_version(who, version)
    who.see("version")
    for tab in ("Evaluation", "Layers", "Files", "Card", "Use it"):
        who.tab(tab)
        who.see(f"version-{tab.lower().replace(' ', '-')}")


def try_it(who: Visitor, version: int) -> None:
    page = who.page
    who.go("Endpoints", MODEL, "Try it")
    page.get_by_role("spinbutton").first.fill("5.1")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#answer .ty-answer")).to_be_visible()
    expect(who.card("Answer")).to_contain_text(f"{MODEL} v{version}")
    who.see("version-try")


def roll_back(who: Visitor, target: int) -> None:
    page = who.page
    who.go("Endpoints", MODEL)
    who.card("Roll back").get_by_role("textbox").fill("The gauges disagree.")
    page.get_by_role("button", name=f"Roll back to v{target}").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"answered by v{target} again")
    who.see("rollback-confirm")
    who.confirm("Roll back")
    history = who.card("History").locator("tbody tr").first
    expect(history).to_contain_text("rolled back")
    expect(history).to_contain_text("The gauges disagree.")
    expect(who.card("Replicas").locator(".card-header")).to_contain_text("all serve this generation")
    expect(page.locator(".ty-kpi", has_text="Production")).to_contain_text(f"v{target}")
    who.see("endpoint-rolled-back")


def look_at_models(who: Visitor) -> None:
    who.go("Models")
    who.see("models")
    who.go("Models", MODEL)
    who.see("model")
    who.go("Approvals", "All")
    who.see("approvals-all")


# People, tokens, workers


def keep_a_token_for_a_moment(who: Visitor) -> None:
    page = who.page
    who.go("Tokens")
    page.get_by_label("What it is for").fill("notebook")
    who.press("Make the token")
    expect(page.get_by_test_id("token")).to_be_visible()
    who.see("token-made")
    who.follow(page.get_by_role("link", name="Done"))
    who.see("tokens")
    row = page.get_by_role("row", name=re.compile("notebook"))
    row.get_by_role("button", name="Revoke").click()
    who.confirm("Revoke")
    expect(row).to_have_count(0)


def administer(who: Visitor) -> None:
    page = who.page
    who.go("People")
    page.get_by_label("User name").fill("newcomer")
    who.press("Make a login link")
    who.see("person-link")
    who.follow(page.get_by_role("link", name="Done"))
    expect(page.get_by_role("row", name=re.compile("newcomer"))).to_be_visible()
    who.see("people")
    who.go("Audit")
    who.see("audit")
    who.follow(page.get_by_role("link", name="Verify the chain"))
    expect(page.get_by_role("main")).to_contain_text("rows verify")
    who.see("audit-verify")
    who.go("Projects")
    who.see("projects")
    page.goto(f"/p/{PROJECT}/settings")
    who.see("project-settings")


def drain_and_enable(who: Visitor) -> None:
    page = who.page
    who.go("Workers")
    who.press("Drain")
    who.confirm("Drain")
    expect(page.get_by_role("button", name="Enable")).to_be_visible()
    who.see("workers-draining")
    who.press("Enable")
    expect(page.get_by_role("button", name="Drain")).to_be_visible()
    who.follow(page.locator(".card a").first)
    expect(page.get_by_role("heading", name="Devices")).to_be_visible()
    who.see("worker")
    who.go("Queue")
    who.see("queue")
