"""Registry pages before anything is released."""

import pytest

from jobs.models import User
from tests.markup import one_line, text_of
from tests.people import browser_of
from tests.registry.conftest import OPEN_GATES, Yard, judge, see


@pytest.mark.parametrize("path", ["/models", "/approvals", "/endpoints"])
def test_empty_lists_show_the_next_step(db: None, path: str) -> None:
    page = see(User.objects.create_user("newcomer"), path)
    assert b"empty-title" in page.content


def test_a_page_of_a_version_reloads_itself_once_it_is_validated(yard: Yard) -> None:
    version = yard.version()
    type(version).objects.filter(pk=version.pk).update(state="validating")
    path = f"/models/digits/versions/{version.number}"
    page = see(yard.member, path).content.decode()
    assert f'hx-get="{path}?part=state"' in page
    assert 'hx-get="' not in see(yard.member, path, tab="card").content.decode(), "a text is typed there"
    waiting = see(yard.member, path, part="state")
    assert (waiting.status_code, waiting.get("HX-Refresh")) == (204, None)
    type(version).objects.filter(pk=version.pk).update(state="candidate")
    assert see(yard.member, path, part="state")["HX-Refresh"] == "true"
    assert f"{path}?part=state" not in see(yard.member, path).content.decode()
    assert see(yard.stranger, path, part="state").status_code == 404


def test_an_empty_inbox_shows_a_request_as_soon_as_it_can_be_decided(yard: Yard) -> None:
    request = yard.request()
    page = one_line(see(yard.approver, "/approvals"))
    assert 'hx-get="/approvals" hx-trigger="every 5s"' in page
    judge(request, OPEN_GATES)
    browser = browser_of(yard.approver)
    part = browser.get("/approvals", HTTP_HX_REQUEST="true").content.decode()
    assert f"/approvals/{request.pk}" in part
    assert "<html" not in part
    assert "hx-get" not in part, "the chosen row would be lost"


def test_the_overview_of_a_version_names_the_columns_that_it_takes(yard: Yard) -> None:
    version = yard.version()
    version.signature = {**version.signature, "columns": [{"name": "city", "type": "category"}]}
    version.save()
    page = text_of(see(yard.viewer, f"/models/digits/versions/{version.number}"))
    assert "Columns of one row: city category" in page
