"""The pages of people, projects, tokens, workers and the queue, in use."""

import time
from collections.abc import Callable

import pytest
from django.db import transaction
from playwright.sync_api import Page, expect

from jobs.actions.audit import audit
from jobs.actions.people import people as actions
from jobs.actions.people import tokens
from jobs.messages.warm_processes import Warm
from jobs.models import AuditEvent, Worker
from jobs.states import JobState
from tests import factories
from tests.browser.conftest import Watch
from tests.browser.looking import Look
from tests.people import PASSWORD, People
from tests.present import present

Open = Callable[..., Page]


@pytest.fixture
def busy_installation(people: People) -> People:
    """A project with jobs in every state, workers, tokens, an approval, an audit log."""
    owner, member, project = people.owner, people.member, people.project
    experiment = factories.make_experiment("digits with an mlp", project=project, by=member)
    running = factories.make_job(
        by=member, experiment=experiment, state=JobState.RUNNING, progress={"done": 3, "total": 8}
    )
    factories.make_trials(running, 6)
    first = factories.make_worker("box-a", slots=8)
    factories.make_attempt(running, first, slots=3)
    factories.make_worker("box-b", slots=4, state=Worker.State.DRAINING)
    factories.make_worker("gpu-1", slots=2, pool="gpu")
    for number, state in enumerate((JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)):
        error = {"code": "diverged", "message": "The loss became NaN in epoch 3."}
        job = factories.make_job(by=owner, experiment=experiment, state=state, ordinal=number + 2)
        if state == JobState.FAILED:
            job.error = error
            job.save(update_fields=["error"])
    for priority in (70, 50, 50):
        why = "Waits for 2 slots in pool gpu: 1 of 2 is free."
        factories.make_job(
            by=member, experiment=experiment, priority=priority, slots=2, pool="gpu", why_waiting=why
        )
    model = factories.make_model("digits", project=project, by=member)
    factories.make_promotion(model.versions.get(), by=member)
    tokens.create(owner, by=owner, scopes=["read", "write"], name="nightly export")
    with transaction.atomic():
        for verb in ("submit", "pause", "resume"):
            audit.record(f"job.{verb}", running, by=member, project=project, reason="making room")
    return people


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/docs", "help"),
        ("/styleguide", "styleguide"),
        ("/projects/new", "project-new"),
    ],
)
def test_page_looks_right_and_is_accessible(
    busy_installation: People, open_as: Open, look: Look, path: str, name: str
) -> None:
    page = open_as(busy_installation.administrator, path)
    expect(page.locator("h1")).to_be_visible()
    look(page, name)


def test_home_of_a_new_user_shows_the_first_steps(people: People, open_as: Open, look: Look) -> None:
    page = open_as(people.stranger)
    expect(page.get_by_role("heading", name="Start here")).to_be_visible()
    look(page, "home-empty")


def test_login_looks_right(people: People, open_as: Open, look: Look) -> None:
    page = open_as(None, "/accounts/login/")
    look(page, "login")
    page.get_by_label("Username").fill("member")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Home")).to_be_visible()


def test_a_one_time_link_logs_in_once_and_suggests_a_password(
    people: People, open_as: Open, look: Look, watch: Watch
) -> None:
    person = actions.add_person("newcomer", by=people.administrator)
    link = actions.create_login_link(person, by=people.administrator)
    page = open_as(None, link)
    look(page, "login-link")
    page.get_by_role("button", name="Log in as newcomer").click()
    expect(page.get_by_text("Set a password here")).to_be_visible()
    page.get_by_role("link", name="Set a password").click()
    boxes = page.locator("input[type=password]")
    boxes.nth(0).fill("a long new secret")
    boxes.nth(1).fill("a long new secret")
    # The form is sent once the server has answered, which is after the click.
    with page.expect_event("framenavigated"):
        page.get_by_role("button", name="Save").click()
    page.wait_for_load_state()
    page.goto(link)
    expect(page.get_by_text("used, expired or void")).to_be_visible()
    watch.ignore("404")


def test_a_confirmation_names_the_consequences(busy_installation: People, open_as: Open, look: Look) -> None:
    page = open_as(busy_installation.owner, "/tokens")
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("dialog")).to_contain_text("lose access")
    look(page, "confirm")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("nightly export")).to_be_visible()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("no longer works")).to_be_visible()


def test_a_confirmed_action_is_done_although_its_button_was_replaced_meanwhile(
    busy_installation: People, open_as: Open
) -> None:
    page = open_as(busy_installation.owner, "/tokens")
    page.get_by_role("button", name="Revoke").click()
    page.evaluate(
        "document.querySelectorAll('main form').forEach((form) => form.replaceWith(form.cloneNode(true)))"
    )
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("no longer works")).to_be_visible()


def test_a_token_is_shown_once(busy_installation: People, open_as: Open) -> None:
    page = open_as(busy_installation.member, "/tokens")
    page.get_by_label("Purpose").fill("notebook")
    page.get_by_role("button", name="Create token").click()
    raw = page.get_by_test_id("token").inner_text()
    assert tokens.authenticate(raw)
    page.get_by_role("link", name="Done").click()
    assert raw not in page.content()


def test_a_new_owner_is_asked_for_only_if_tokens_are_handed_over(
    busy_installation: People, open_as: Open
) -> None:
    tokens.create(busy_installation.viewer, by=busy_installation.viewer, scopes=["read"])
    page = open_as(busy_installation.administrator, "/people/viewer/departure")
    owner = page.get_by_label("New owner")
    expect(page.get_by_label("Keep them")).to_be_checked()
    expect(owner).to_be_hidden()
    page.get_by_label("Hand them over").check()
    expect(owner).to_be_visible()
    page.get_by_label("Revoke them").check()
    expect(owner).to_be_hidden()


def test_the_warm_processes_of_a_worker_are_shown(
    busy_installation: People, open_as: Open, look: Look
) -> None:
    warm = [
        Warm(kind=kind, state=state, threads=1, pid=pid, since=time.time() - 40, memory_bytes=150_000_000)
        for kind, state, pid in (("fork server", "ready", 41), ("standby", "preparing", 42))
    ]
    worker = factories.make_worker("box-c", info={"warm": [process.model_dump() for process in warm]})
    look(open_as(busy_installation.member, f"/workers/{worker.pk}"), "worker")


def test_draining_can_be_undone(busy_installation: People, open_as: Open) -> None:
    page = open_as(busy_installation.administrator, "/workers")
    card = page.locator(".card", has_text="box-a")
    card.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(card.get_by_text("draining").first).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(card.get_by_role("button", name="Drain")).to_be_visible()


def test_the_queue_is_reordered_by_keyboard_and_mouse(busy_installation: People, open_as: Open) -> None:
    page = open_as(busy_installation.member, "/queue")
    page.get_by_role("button", name="Move up").last.click()
    expect(page.get_by_text("priority 50 → 51")).to_be_visible()
    box = page.get_by_label("Priority of job").first
    box.fill("90")
    box.press("Enter")
    expect(page.get_by_text("→ 90")).to_be_visible()
    button = page.get_by_role("button", name="Set the priority of job").first
    expect(button).to_be_hidden()
    page.get_by_label("Priority of job").first.fill("80")
    button.click()
    expect(page.get_by_text("→ 80")).to_be_visible()


def test_each_click_on_a_button_that_deletes_asks_again(busy_installation: People, open_as: Open) -> None:
    page = open_as(busy_installation.owner, "/tokens")
    # The browser keeps the page, as it does when it comes back to it.
    page.route("**/revoke", lambda route: route.fulfill(status=204))
    revoke = page.get_by_role("button", name="Revoke").first
    for _ in range(2):
        revoke.click()
        dialog = page.get_by_role("dialog", name="Revoke this token?")
        expect(dialog).to_be_visible()
        with page.expect_request("**/revoke"):
            dialog.get_by_role("button", name="Revoke").click()


def test_search_finds_by_keyboard(busy_installation: People, open_as: Open, look: Look) -> None:
    page = open_as(busy_installation.member, "/queue")
    page.keyboard.press("Control+k")
    page.keyboard.type("digits")
    expect(page.get_by_role("option").first).to_be_visible()
    look(page, "search")


def test_an_invalid_form_lists_its_problems(people: People, open_as: Open, watch: Watch, look: Look) -> None:
    page = open_as(people.member, "/projects/new")
    # The slug follows the name, until it is written.
    page.get_by_label("Name").fill("Räder & 2 Züge ")
    expect(page.get_by_label("Slug")).to_have_value("rader-2-zuge")
    page.get_by_label("Slug").fill("Not a slug")
    page.get_by_label("Name").fill("")
    expect(page.get_by_label("Slug")).to_have_value("Not a slug")
    page.get_by_role("button", name="Create project").click()
    expect(page.get_by_role("alert")).to_contain_text("2 problems to fix")
    watch.ignore("422")
    look(page, "form-refused")


def test_a_missing_page_shows_an_error_page(people: People, open_as: Open, watch: Watch, look: Look) -> None:
    page = open_as(people.stranger, "/p/yard/settings")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    watch.ignore("404")
    look(page, "not-found")


def test_a_role_changes_by_its_button_which_appears_with_the_choice(open_as: Open, people: People) -> None:
    page = open_as(people.owner, "/p/yard/settings")
    row = page.get_by_role("row").filter(has=page.get_by_label("Role of viewer"))
    change = row.get_by_role("button", name="Change")
    expect(change).to_be_hidden()
    row.get_by_label("Role of viewer").select_option("member")
    expect(change).to_be_visible()
    assert people.project.memberships.get(user=people.viewer).role == "viewer"
    change.click()
    expect(page.get_by_role("status")).to_contain_text("viewer is member of The yard.")
    assert people.project.memberships.get(user=people.viewer).role == "member"


def test_a_narrow_screen_shows_whole_titles_of_search_results(open_as: Open, people: People) -> None:
    factories.make_experiment(
        "A name that is longer than half a line", project=people.project, by=people.owner
    )
    page = open_as(people.owner, "/projects")
    page.set_viewport_size({"width": 390, "height": 844})
    page.keyboard.press("Control+k")
    page.keyboard.type("A name that")
    title = page.get_by_role("option").first.locator(".ty-elide")
    expect(title).to_have_text("A name that is longer than half a line")
    assert title.evaluate("element => element.scrollWidth <= element.clientWidth"), "it is cut"


@pytest.mark.parametrize("result", ["truncated", "sealed"])
def test_the_result_of_a_failed_verification_looks_right_and_is_accessible(
    busy_installation: People, open_as: Open, look: Look, result: str
) -> None:
    present(AuditEvent.objects.order_by("number").last()).delete()
    if result == "sealed":
        audit.seal_chain("A backup of the night before was restored.", by=busy_installation.administrator)
    page = open_as(busy_installation.administrator, "/audit/verify")
    expect(page.get_by_text("The last rows are missing")).to_be_visible()
    look(page, f"audit-verify-{result}")
