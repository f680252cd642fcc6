"""Uploads that were left before they were versions: continued, forgotten or refused."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from jobs import upload_files
from jobs.actions.data import resumable_uploads
from jobs.models import DatasetVersion, ResumableUpload
from jobs.models.sessions import Session
from tests.browser.conftest import Watch
from tests.browser.data.test_upload_page import MIB, Open, assert_received, choose, ignore_cuts
from tests.people import People


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with 24 MiB."""
    file = tmp_path_factory.mktemp("upload") / "orders.csv"
    file.write_text("id,price\n" + "".join(f"{i:07},{i % 977:03}\n" for i in range(24 * MIB // 12)))
    return file


TWINS = """(rows) => {
  const dropped = new DataTransfer();
  for (const row of rows)
    dropped.items.add(new File([`id,price\\n${row}\\n`], "part.csv", { lastModified: 1 }));
  return dropped;
}"""


def remembered(page: Page) -> list[str]:
    """Return the keys of the uploads that the browser finds again."""
    keys: list[str] = page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('tus::'))")
    return keys


def end_sessions(route: Route) -> None:
    """End all sessions before the form is sent."""
    if route.request.method == "POST":
        Session.objects.all().delete()
    route.continue_()


def test_a_file_that_has_arrived_is_not_sent_again_after_its_page_was_left(
    people: People, open_as: Open, server: str, watch: Watch, orders: Path
) -> None:
    page = open_as(people.member, "/datasets/new")
    page.route(
        "**/datasets/new",
        lambda route: route.abort() if route.request.method == "POST" else route.continue_(),
    )
    choose(page, orders)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text("The connection was lost. Press Upload again.")).to_be_visible()
    page.unroute_all()
    page.goto(f"{server}/datasets/new")
    choose(page, orders)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("heading", name="orders v1")).to_be_visible()
    watch.ignore("ERR_FAILED")
    assert_received(orders)
    assert remembered(page) == []


def test_a_file_is_not_sent_again_after_the_login_of_an_expired_session(
    people: People, open_as: Open, orders: Path
) -> None:
    # With a fragment, as after a link to a field: it is no part of the address of a response.
    page = open_as(people.member, "/datasets/new#content")
    page.route("**/datasets/new", end_sessions)
    choose(page, orders)
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/accounts/login/**")
    assert len(remembered(page)) == 1
    assert ResumableUpload.objects.count() == 1


def test_what_a_version_has_is_forgotten_also_after_the_form_was_refused(
    people: People, open_as: Open, watch: Watch, orders: Path
) -> None:
    page = open_as(people.member, "/datasets/new#content")
    choose(page, orders)
    page.get_by_label("Damaged rows").fill("many")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text("Received: orders.csv")).to_be_visible()
    watch.ignore("422")
    assert len(remembered(page)) == 1
    page.get_by_label("Damaged rows").fill("0")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("heading", name="orders v1")).to_be_visible()
    assert remembered(page) == []
    assert_received(orders)


@pytest.mark.parametrize("second", ["3,4", "1,2"])
def test_files_that_look_the_same_are_two_uploads(people: People, open_as: Open, second: str) -> None:
    page = open_as(people.member, "/datasets/new")
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": page.evaluate_handle(TWINS, ["1,2", second])})
    expect(page.locator("[data-preview] th")).to_have_count(2)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("heading", name="part v1")).to_be_visible()
    version = DatasetVersion.objects.get(dataset__slug="part")
    assert version.files == ["part.csv", "part.csv"]
    assert not ResumableUpload.objects.exists()
    assert remembered(page) == []


def test_an_upload_that_still_arrives_is_not_deleted_and_the_page_says_why(
    people: People, open_as: Open, watch: Watch
) -> None:
    upload = resumable_uploads.begin(people.project, name="orders.csv", length=MIB, by=people.member)
    page = open_as(people.member, "/datasets/new")
    button = page.get_by_role("button", name="Delete the upload of orders.csv")
    with upload_files.locked_file(upload.pk):
        button.click()
        expect(page.locator("#refusals")).to_contain_text(upload_files.BUSY)
    button.click()
    expect(button).to_have_count(0)
    assert not ResumableUpload.objects.exists()
    ignore_cuts(watch)
