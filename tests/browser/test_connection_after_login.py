"""Pages after the end of a session: a login brings back their entries, and another person's does not."""

from playwright.sync_api import Page, expect

from jobs.actions.people.people import create_login_link, end_sessions
from jobs.models import Experiment, User
from tests import factories, own_code
from tests.browser.conftest import Held, Watch
from tests.browser.test_connection import Open, notice, wait_until_checked
from tests.datasets.making import bundle
from tests.people import People, browser_of


def test_a_check_after_the_end_of_the_session_is_repeated_after_a_login(
    people: People, open_as: Open, watch: Watch
) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/experiments/new")
    wait_until_checked(page)
    end_sessions(people.owner)
    page.locator("[name=name]").fill("typed by hand")
    expect(page.locator("#experiment-form [data-verdict]")).to_have_text("logged out")
    log_in(page, people.owner)
    page.get_by_role("button", name="Try now").click()
    wait_until_checked(page)
    watch.ignore("401")


def test_a_model_that_is_not_built_after_the_end_of_the_session_is_built_after_a_login(
    people: People, open_as: Open, watch: Watch
) -> None:
    factories.make_dataset("flowers", project=people.project, by=people.member)
    body = {"project": "yard", "files": [{"path": "model.py", "text": own_code.TUNED_FIT}]}
    code = browser_of(people.trainer).post("/api/v1/code", body, content_type="application/json").json()
    form = f"/p/yard/experiments/new?dataset=flowers&code={code['digest']}&entry=TunedFit"
    page = open_as(people.trainer, form)
    page.get_by_role("link", name="Model", exact=True).click()
    state = page.locator("[data-own-state]")
    expect(state).to_contain_text("Building the model")
    end_sessions(people.trainer)
    page.get_by_label("classes").fill("3")
    expect(state).to_have_text("You are logged out. The model is built after the login.")
    log_in(page, people.trainer)
    page.get_by_role("button", name="Try now").click()
    expect(state).to_contain_text("Building the model")
    watch.ignore("401")


def test_columns_that_are_asked_for_after_the_end_of_the_session_appear_after_a_login(
    people: People, open_as: Open, watch: Watch
) -> None:
    bundle()
    page = open_as(people.owner)
    held = Held(page, "**/experiments/columns?*")
    page.goto("/p/yard/experiments/new")
    columns = held.next()
    wait_until_checked(page)
    end_sessions(people.owner)
    columns.continue_()
    notice(page, "You are logged out")
    rows = page.locator("[data-preprocessing] [data-columns]")
    expect(rows).to_have_text("The columns could not be loaded; change the search to try again.")
    page.unroute("**/experiments/columns?*")
    log_in(page, people.owner)
    page.get_by_role("button", name="Try now").click()
    expect(rows).to_have_text("The columns of arrays are used as they are.")
    watch.ignore("401")


def test_a_check_that_was_refused_before_a_login_is_asked_again(
    people: People, open_as: Open, watch: Watch
) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/experiments/new")
    wait_until_checked(page)
    held = Held(page, "**/experiments/validate")
    page.locator("[name=name]").fill("typed by hand")
    held.next().fulfill(status=401, json={"detail": "Log in."})  # late: there is a new session
    held.next().continue_()
    wait_until_checked(page)
    expect(page.get_by_text("Log in.")).to_have_count(0)
    watch.ignore("401")


def test_a_check_that_is_refused_twice_shows_why(people: People, open_as: Open, watch: Watch) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/experiments/new")
    wait_until_checked(page)
    held = Held(page, "**/experiments/validate")
    page.locator("[name=name]").fill("typed by hand")
    for _ in range(2):
        held.next().fulfill(status=401, json={"detail": "The token of the session is missing."})
    expect(page.locator("#json-problems li")).to_contain_text("The token of the session is missing.")
    watch.ignore("401")


def log_in(page: Page, person: User) -> None:
    """Log in as a person in another tab of the same browser."""
    tab = page.context.new_page()
    tab.goto(create_login_link(person, by=None))
    tab.get_by_role("button", name=f"Log in as {person.username}").click()
    expect(tab.get_by_role("navigation", name="Main")).to_be_visible()
    tab.close()


def test_a_page_sends_nothing_after_a_login_as_another_person_and_goes_on_after_the_own_one(
    people: People, open_as: Open, watch: Watch
) -> None:
    bundle()
    page = open_as(people.owner)
    held = Held(page, "**/experiments/columns?*")
    page.goto("/p/yard/experiments/new")
    page.locator("[name=name]").fill("typed by hand")
    columns = held.next()
    wait_until_checked(page)
    log_in(page, people.member)
    page.get_by_role("button", name="Save draft").click()
    notice(page, "You are logged in as member now")
    with page.expect_response("**/account/session"):
        columns.fulfill(status=401)  # the answer for the session that the login has ended, late
    page.unroute("**/experiments/columns?*")
    notice(page, "You are logged in as member now")
    notice(page, "“Save draft” was not sent. Try again once you are logged in as owner.")
    assert not Experiment.objects.exists()
    log_in(page, people.owner)
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#toasts")).to_contain_text("You are logged in again.")
    page.get_by_role("button", name="Save draft").click()
    page.wait_for_url("**/edit*")
    experiment = Experiment.objects.get()
    assert (experiment.name, experiment.created_by) == ("typed by hand", people.owner)
    watch.ignore("401")


def test_a_page_notices_a_login_as_another_person_when_it_gets_the_focus(
    people: People, open_as: Open
) -> None:
    page = open_as(people.owner, "/projects")
    log_in(page, people.member)
    page.evaluate("dispatchEvent(new Event('focus'))")
    notice(page, "You are logged in as member now")
    expect(page.get_by_role("link", name="Log in in a new tab")).to_be_hidden()


def test_a_part_that_finds_the_session_ended_leaves_the_page_with_its_entries(
    people: People, open_as: Open, watch: Watch
) -> None:
    model = factories.make_model("digits", project=people.project, by=people.member)
    request = factories.make_promotion(model.versions.get(), by=people.member)
    page = open_as(people.approver, f"/approvals/{request.pk}")
    page.get_by_role("region", name="Decide").get_by_label("Comment").fill("it fails on sevens")
    end_sessions(people.approver)
    notice(page, "You are logged out")
    expect(page.get_by_role("region", name="Decide").get_by_label("Comment")).to_have_value(
        "it fails on sevens"
    )
    watch.ignore("401")
