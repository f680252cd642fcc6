"""Pages behind the shipped configurations of proxies: live events, uploads, and limits of worse proxies."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from jobs.actions.runs import events
from jobs.models import DatasetVersion, Job
from tests.browser.conftest import Watch
from tests.browser.data.test_upload_page import choose
from tests.browser.proxies.front_door import (
    FOREIGN_ERRORS,
    USUAL_BODY_SIZE,
    WITHOUT_WEBSOCKETS,
    behind_caddy,
    behind_nginx,
)
from tests.factories import make_job
from tests.people import People

Open = Callable[..., Page]


@pytest.fixture
def job(people: People) -> Job:
    return make_job(by=people.member, project=people.project, kind="train", state="running")


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 2 MB, twice what nginx allows by itself."""
    file = tmp_path_factory.mktemp("upload") / "orders.csv"
    file.write_text("id,price\n" + "".join(f"{i:07},{i % 977:03}\n" for i in range(180_000)))
    return file


def see_new_line(page: Page, job: Job, text: str) -> None:
    """Let the job log a line, and see it on the page of its log."""
    events.append(job.pk, [events.event("log", job, level="info", source="runner", line=text)])
    expect(page.get_by_text(text)).to_be_visible()


def hide(page: Page, state: str) -> None:
    """Let a page be in the background, or come back."""
    page.evaluate(
        """(state) => {
            Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


@pytest.mark.parametrize("proxy", [behind_nginx, behind_caddy])
def test_sockets_and_uploads_pass_the_shipped_configuration(
    people: People, open_as: Open, server: str, job: Job, orders: Path, tmp_path: Path,
    proxy: Callable[[str, Path], AbstractContextManager[str]],
) -> None:  # fmt: skip
    with proxy(server, tmp_path) as address:
        page = open_as(people.member, "/", at=address)
        with page.expect_websocket() as opened:
            page.goto(f"/jobs/{job.pk}?tab=logs")
        see_new_line(page, job, "by a socket")
        assert opened.value.url.startswith("wss://") and not opened.value.is_closed()
        page.goto("/datasets/new")
        choose(page, orders)
        page.get_by_role("button", name="Upload", exact=True).click()
        expect(page.get_by_role("heading", name="orders v1")).to_be_visible()
        assert DatasetVersion.objects.filter(dataset__slug="orders").exists()
        page.close()


def test_pages_follow_event_streams_where_a_proxy_lets_no_socket_through(
    people: People, open_as: Open, server: str, job: Job, watch: Watch, tmp_path: Path
) -> None:
    with behind_nginx(server, tmp_path, WITHOUT_WEBSOCKETS) as address:
        page = open_as(people.member, "/", at=address)
        with page.expect_request(lambda request: "/events?after=" in request.url):
            page.goto(f"/jobs/{job.pk}?tab=logs")
        see_new_line(page, job, "by a stream")
        expect(page.get_by_role("alert").filter(has_text="No live updates")).to_have_count(0)
        # The next page knows it, and gets each line once.
        page.goto(f"/jobs/{job.pk}?tab=logs")
        see_new_line(page, job, "by a stream at once")
        assert page.get_by_text("by a stream", exact=True).count() == 1
        # A tab in the background leaves its connection to others.
        hide(page, "hidden")
        events.append(job.pk, [events.event("log", job, level="info", source="runner", line="unseen")])
        with page.expect_request(lambda request: "/events?after=" in request.url):
            hide(page, "visible")
        expect(page.get_by_text("unseen", exact=True)).to_have_count(1)
        page.close()
    watch.ignore("WebSocket connection to")


def test_a_proxy_that_cuts_uploads_is_named_with_its_setting(
    people: People, open_as: Open, server: str, orders: Path, watch: Watch, tmp_path: Path
) -> None:
    with behind_nginx(server, tmp_path, USUAL_BODY_SIZE, FOREIGN_ERRORS) as address:
        page = open_as(people.member, "/datasets/new", at=address)
        choose(page, orders)
        page.get_by_role("button", name="Upload", exact=True).click()
        expect(page.get_by_text("nginx: client_max_body_size")).to_be_visible()
        page.close()
    watch.ignore("413")
