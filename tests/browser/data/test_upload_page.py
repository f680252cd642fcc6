"""The page of uploads sends a file in parts, and continues it after the connection was cut."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Dialog, Page, expect

from jobs import upload_files
from jobs.models import DatasetVersion, ResumableUpload
from tests.browser.conftest import Watch
from tests.browser.data.cutting_proxy import cutting_proxy
from tests.browser.looking import Look
from tests.people import People

Open = Callable[..., Page]
MIB = 2**20


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with 24 MiB."""
    file = tmp_path_factory.mktemp("upload") / "orders.csv"
    file.write_text("id,price\n" + "".join(f"{i:07},{i % 977:03}\n" for i in range(24 * MIB // 12)))
    return file


def ignore_cuts(watch: Watch) -> None:
    """Drop the errors that a cut causes: 404 is the second request to delete the same upload."""
    for provoked in ("ERR_", "404", "409", "423"):
        watch.ignore(provoked)


def choose(page: Page, file: Path) -> None:
    """Choose a table of two columns, and wait for its first rows: they move the button below them."""
    page.set_input_files("input[type=file]", file)
    expect(page.locator("[data-preview] th")).to_have_count(2)


def wait_for_half(page: Page) -> None:
    """Wait until the server has received a third. The proxy lets half through."""
    deadline = time.monotonic() + 60
    while (
        not (uploads := list(ResumableUpload.objects.all()))
        or upload_files.received_bytes(uploads[0].pk) < 8 * MIB
    ):
        assert time.monotonic() < deadline
        page.wait_for_timeout(20)


def assert_received(orders: Path) -> None:
    version = DatasetVersion.objects.select_related("upload").get(dataset__slug="orders")
    assert version.upload is not None
    assert version.upload.digest == hashlib.sha256(orders.read_bytes()).hexdigest()
    assert not ResumableUpload.objects.exists()


def test_an_upload_continues_by_itself_after_its_connection_was_cut(
    people: People, open_as: Open, server: str, watch: Watch, orders: Path
) -> None:
    with cutting_proxy(urlsplit(server).port or 0) as proxy:
        page = open_as(people.member, "/datasets/new", at=proxy.address)
        choose(page, orders)
        before, size = proxy.sent, orders.stat().st_size
        proxy.cut_at = before + size // 2
        page.get_by_role("button", name="Upload", exact=True).click()
        expect(page.get_by_role("heading", name="orders v1")).to_be_visible()
        assert not proxy.will_cut, "nothing was cut"
        # The first half was not sent again, except for bytes under way.
        assert proxy.sent - before < 1.4 * size
    ignore_cuts(watch)
    assert_received(orders)


def test_an_upload_is_cancelled_paused_and_continued_after_a_reload(
    people: People, open_as: Open, look: Look, server: str, watch: Watch, orders: Path
) -> None:
    with cutting_proxy(urlsplit(server).port or 0) as proxy:
        page = open_as(people.member, "/datasets/new", at=proxy.address)
        choose(page, orders)
        size = orders.stat().st_size
        proxy.hold(size // 2)
        page.get_by_role("button", name="Upload", exact=True).press("Enter")
        expect(page.locator("[data-sent]")).to_contain_text("MB of 25.2 MB")
        page.get_by_role("button", name="Cancel").press("Enter")
        # The server cannot delete it while it waits for the rest of the part.
        proxy.release()
        expect(page.get_by_text("The upload was cancelled.")).to_be_visible()
        assert not ResumableUpload.objects.exists()
        proxy.hold(size // 2)
        page.get_by_role("button", name="Upload", exact=True).press("Enter")
        wait_for_half(page)
        page.get_by_role("button", name="Pause").press("Enter")
        expect(page.get_by_text("Paused.")).to_be_visible()
        ignore_cuts(watch)
        look(page, "dataset-upload-paused")
        proxy.release()
        page.reload()
        expect(page.get_by_role("heading", name="Unfinished uploads")).to_be_visible()
        expect(page.locator("[data-unfinished] li")).to_contain_text("orders.csv")
        before = proxy.sent
        choose(page, orders)
        page.get_by_role("button", name="Upload", exact=True).click()
        expect(page.get_by_role("heading", name="orders v1")).to_be_visible()
        assert proxy.sent - before < 0.8 * size
    ignore_cuts(watch)
    assert_received(orders)


def test_leaving_in_the_middle_asks_first_and_the_upload_can_be_continued_afterwards(
    people: People, open_as: Open, server: str, watch: Watch, orders: Path
) -> None:
    with cutting_proxy(urlsplit(server).port or 0) as proxy:
        page = open_as(people.member, "/datasets/new", at=proxy.address)
        choose(page, orders)
        proxy.hold(orders.stat().st_size // 2)
        page.get_by_role("button", name="Upload", exact=True).click()
        wait_for_half(page)
        asked: list[str] = []

        def leave(dialog: Dialog) -> None:
            asked.append(dialog.type)
            dialog.accept()

        page.on("dialog", leave)
        # The upload is still held: the rest of it could arrive sooner than the click.
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Tokens").click()
        page.wait_for_url("**/tokens")
        assert asked == ["beforeunload"]
        proxy.release()
        page.go_back()
        expect(page.locator("[data-unfinished] li")).to_contain_text("orders.csv")
        page.set_input_files("input[type=file]", orders)
        # By keyboard: the first rows of the file, which may come meanwhile, move the button.
        page.get_by_role("button", name="Upload", exact=True).press("Enter")
        expect(page.get_by_role("heading", name="orders v1")).to_be_visible()
        page.go_back()
        # The browser restores the file, and would report no change if the same one were chosen again.
        expect(page.locator("[data-preview] th")).to_have_count(2)
        page.set_input_files(
            "input[type=file]", {"name": "b.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"}
        )
        page.get_by_role("button", name="Upload", exact=True).press("Enter")
        expect(page.get_by_role("heading", name="b v1")).to_be_visible()
        assert asked == ["beforeunload"]
    ignore_cuts(watch)
    assert_received(orders)


DROP = """() => {
  const dropped = new DataTransfer();
  for (const name of ["part-10.csv", "part-9.csv"])
    dropped.items.add(new File(["id,price\\n1,2\\n"], name));
  return dropped;
}"""


def test_dropped_files_are_one_version_in_the_order_of_their_names(people: People, open_as: Open) -> None:
    page = open_as(people.member, "/datasets/new")
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": page.evaluate_handle(DROP)})
    expect(page.locator("[data-order] li")).to_have_text(["part-9.csv", "part-10.csv"])
    expect(page.locator("[data-preview] th")).to_have_count(2)  # the first rows move the button
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("heading", name="part-9 v1")).to_be_visible()
    version = DatasetVersion.objects.get(dataset__slug="part-9")
    assert version.files == ["part-9.csv", "part-10.csv"]
    assert not ResumableUpload.objects.exists()
