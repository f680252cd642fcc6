"""Pages of a server that hangs, ends and comes back: they report it, and keep the person and the entries."""

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from jobs.actions.people.people import create_login_link, end_sessions
from tests import factories
from tests.browser.conftest import Watch, free_port, start_server, wait_until_up
from tests.browser.looking import look_at
from tests.datasets.making import bundle
from tests.people import People

Open = Callable[..., Page]
REPORTED = 3.0
"""Seconds until a page reports that its server is gone or hangs."""
TRIES = 3


class WebServer:
    """A web server that a test may stop, continue, kill and start again at the same address."""

    def __init__(self, log: Path) -> None:
        self.port, self.log = free_port(), log
        self.start()

    def start(self) -> None:
        self.process: subprocess.Popen[bytes] = start_server(self.port, self.log)
        self.address = wait_until_up(self.port, self.process, self.log)

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def be_up(self) -> None:
        if self.process.poll() is not None:
            self.start()
        self.resume()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=15)


@pytest.fixture(scope="module")
def web_of_this_file(django_db_setup: None) -> Iterator[WebServer]:
    server = WebServer(settings.HOME / "web-that-ends.log")
    yield server
    server.kill()


@pytest.fixture
def web(transactional_db: None, web_of_this_file: WebServer) -> WebServer:
    """A server that answers; it is started again only after a test that killed it."""
    web_of_this_file.be_up()
    return web_of_this_file


def notice(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.get_by_role("alert").filter(has_text=text)).to_be_visible()


def wait_until_checked(page: Page) -> None:
    """Wait for the answer about the experiment of a form: a late refusal would ask who is logged in."""
    expect(page.locator("#experiment-form:is([data-verdict=ok], [data-verdict=bad])")).to_be_attached()


def leave(page: Page, watch: Watch) -> None:
    """Close a page before its server ends, or after it: the browser's console reports each failed request."""
    page.close()
    watch.errors.clear()


def returned(page: Page) -> None:
    """Wait until the page reports that the server is back."""
    expect(page.locator("#toasts")).to_contain_text("The server is back.")
    expect(page.locator("#connection")).to_be_hidden()


def test_a_server_that_hangs_is_reported_within_three_seconds_and_nothing_is_lost(
    people: People, open_as: Open, web: WebServer, watch: Watch
) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/experiments/new", at=web.address)
    page.locator("[name=name]").fill("typed by hand")
    seconds: list[float] = []
    # A busy machine delays the page's own timers, too: one quick report shows that it can.
    while len(seconds) < TRIES and (not seconds or min(seconds) > REPORTED):
        expect(page.locator("#toasts > *")).to_have_count(0)
        web.hang()
        begin = time.monotonic()
        notice(page, re.compile(r"The server has not answered since [012]\d:\d\d:\d\d"))
        seconds.append(time.monotonic() - begin)
        if min(seconds) > REPORTED:
            web.resume()
            returned(page)
    assert min(seconds) < REPORTED
    watch.errors.clear()
    look_at(page, "connection-hangs")
    page.get_by_role("link", name="Queue").click()
    notice(page, "“Queue” was not opened.")
    page.get_by_role("button", name="Save draft").click()
    notice(page, "“Save draft” was not sent.")
    expect(page.locator("[name=name]")).to_have_value("typed by hand")
    web.resume()
    returned(page)
    page.get_by_role("button", name="Save draft").click()
    page.wait_for_url("**/edit*")
    expect(page.locator("[name=name]")).to_have_value("typed by hand")
    here = page.url
    web.hang()
    page.get_by_role("link", name="Queue").click()
    notice(page, "“Queue” was not opened.")
    web.kill()
    assert page.url == here, "the page that was loading did not become the browser's error page"
    leave(page, watch)


def test_a_page_whose_connection_closed_reports_it_and_follows_the_job_again(
    people: People, open_as: Open, web: WebServer, watch: Watch
) -> None:
    experiment = factories.make_experiment(project=people.project, by=people.owner)
    job = factories.make_job(by=people.owner, experiment=experiment, state="running")
    page = open_as(people.owner, at=web.address)
    with page.expect_websocket():
        page.goto(f"/jobs/{job.pk}")
    expect(page.locator("#job-head")).to_contain_text("running")
    web.kill()
    begin = time.monotonic()
    notice(page, "The connection to the server has been lost since")
    assert time.monotonic() - begin < REPORTED
    here = page.url
    page.get_by_role("link", name="Queue").click()
    notice(page, "“Queue” was not opened. Try again once the server is back.")
    assert page.url == here
    watch.errors.clear()
    look_at(page, "connection-lost")
    type(job).objects.filter(pk=job.pk).update(state="completed")
    web.start()
    returned(page)
    expect(page.locator("#job-head")).to_contain_text("completed")
    page.get_by_role("link", name="Queue").click()
    page.wait_for_url("**/queue")
    leave(page, watch)


def test_a_form_that_is_sent_before_the_loss_is_known_stays(
    people: People, open_as: Open, web: WebServer, watch: Watch
) -> None:
    page = open_as(people.owner, "/projects", at=web.address)
    page.goto("/p/yard/experiments/new")
    page.locator("[name=name]").fill("typed by hand")
    web.kill()
    page.get_by_role("button", name="Save draft").click()
    notice(page, "“Save draft” was not sent.")
    expect(page.locator("[name=name]")).to_have_value("typed by hand")
    leave(page, watch)


def test_a_form_that_is_sent_after_the_session_has_ended_stays_and_is_sent_after_a_login(
    people: People, open_as: Open, watch: Watch
) -> None:
    bundle()
    page = open_as(people.owner, "/p/yard/experiments/new")
    page.locator("[name=name]").fill("typed by hand")
    wait_until_checked(page)
    end_sessions(people.owner)
    page.get_by_role("button", name="Save draft").click()
    notice(page, "You are logged out")
    notice(page, "“Save draft” was not sent. Try again once you are logged in.")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Log in in a new tab").click()
    login = opened.value
    login.goto(create_login_link(people.owner, by=None))
    login.get_by_role("button", name="Log in as owner").click()
    expect(login.get_by_role("navigation", name="Main")).to_be_visible()
    login.close()
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#toasts")).to_contain_text("You are logged in again.")
    page.get_by_role("button", name="Save draft").click()
    page.wait_for_url("**/edit*")
    expect(page.locator("[name=name]")).to_have_value("typed by hand")
    watch.ignore("401")


def test_a_comment_that_an_approver_types_moves_to_the_thread_when_another_decides(
    people: People, open_as: Open
) -> None:
    model = factories.make_model("digits", project=people.project, by=people.member)
    request = factories.make_promotion(model.versions.get(), by=people.member)
    type(request).objects.filter(pk=request.pk).update(state="gating")
    page = open_as(people.approver, f"/approvals/{request.pk}")
    decide, thread = (page.get_by_role("region", name=name) for name in ("Decide", "Thread"))
    decide.get_by_label("Comment").fill("it fails on sevens")
    type(request).objects.filter(pk=request.pk).update(state="pending")
    expect(decide.get_by_role("button", name="Approve")).to_be_visible()
    expect(decide.get_by_label("Comment")).to_have_value("it fails on sevens")
    type(request).objects.filter(pk=request.pk).update(state="approved", generation=1)
    expect(page.get_by_role("region", name="Outcome")).to_be_visible()
    expect(thread.get_by_label("Comment")).to_have_value("it fails on sevens")
    expect(page.locator("#toasts")).to_contain_text("it is not sent yet")


def test_the_requester_sees_the_approval_without_a_reload(people: People, open_as: Open) -> None:
    model = factories.make_model("digits", project=people.project, by=people.member)
    request = factories.make_promotion(model.versions.get(), by=people.member)
    page = open_as(people.member, f"/approvals/{request.pk}")
    expect(page.get_by_role("region", name="Decide")).to_be_visible()
    request.decisions.create(user=people.approver, verdict="approve", comment="well done")
    type(request).objects.filter(pk=request.pk).update(state="approved", generation=1)
    expect(page.get_by_role("region", name="Outcome")).to_contain_text("generation 1")
    expect(page.get_by_role("region", name="Outcome")).to_contain_text("approved")
    expect(page.get_by_role("region", name="Thread")).to_contain_text("well done")
    expect(page.locator("#toasts")).to_contain_text("This request is now approved.")
