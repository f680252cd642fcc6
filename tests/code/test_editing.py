"""A version of code is edited on a page, which makes another version."""

import pytest
from django.test import Client

from jobs.models import CodeVersion
from jobs.store import store
from tests.code.making import MODEL
from tests.code.test_pages import store as store_text
from tests.code.test_pages import store_files
from tests.people import People, browser_of


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.member)


def texts(version: CodeVersion) -> dict[str, str]:
    files = version.files.select_related("artifact")
    return {file.path: store().path(file.artifact_id).read_text() for file in files}


def edit_address(version: CodeVersion, file: str) -> str:
    return f"/code/{version.digest}/edit?project=yard&file={file}"


def test_the_present_text_is_offered_and_the_other_files_are_kept(browser: Client) -> None:
    store_files(browser, {"net.py": MODEL, "layers/dense.py": "x = 1\n"}, name="net")
    old = CodeVersion.objects.get()
    page = browser.get(f"/code/{old.digest}?project=yard&file=layers/dense.py").content.decode()
    assert f"/code/{old.digest}/edit?project=yard&amp;file=layers%2Fdense.py" in page
    form = browser.get(edit_address(old, "layers/dense.py")).content.decode()
    assert "x = 1\n</textarea>" in form
    assert 'value="net"' in form

    answer = browser.post(edit_address(old, "layers/dense.py"), {"text": "x = 2\r\n", "name": "net"})
    assert answer.status_code == 303, answer.content
    new = CodeVersion.objects.exclude(pk=old.pk).get()
    assert answer["Location"] == f"/code/{new.digest}?project=yard&file=layers%2Fdense.py"
    assert texts(new) == {"net.py": MODEL, "layers/dense.py": "x = 2\n"}
    assert texts(old) == {"net.py": MODEL, "layers/dense.py": "x = 1\n"}


def test_a_refused_text_stays_in_the_editor_with_its_reason(browser: Client) -> None:
    store_text(browser)
    version = CodeVersion.objects.get()
    address = edit_address(version, "model.py")
    answer = browser.post(address, {"text": "x = 1", "name": "x" * 101})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "x = 1</textarea>" in page
    assert 'href="#at/name"' in page
    answer = browser.post(address, {"text": " ", "name": "net"})
    assert answer.status_code == 422
    assert 'href="#at/text"' in answer.content.decode()
    assert CodeVersion.objects.count() == 1


def test_an_unchanged_text_makes_no_version(browser: Client) -> None:
    store_text(browser)
    version = CodeVersion.objects.get()
    answer = browser.post(edit_address(version, "model.py"), {"text": MODEL, "name": "other"}, follow=True)
    assert "These files are already there" in answer.content.decode()
    assert CodeVersion.objects.count() == 1


def test_a_file_that_is_no_text_is_sent_as_a_file(browser: Client) -> None:
    store_files(browser, {"net.py": MODEL, "logo.png": b"\x89PNG\x00\xff"}, name="net")
    version = CodeVersion.objects.get()
    assert browser.get(edit_address(version, "logo.png")).status_code == 409
    page = browser.get(f"/code/{version.digest}?project=yard&file=logo.png").content.decode()
    assert "/code/new?project=yard&amp;name=net" in page
    assert "/edit?" not in page


def test_a_viewer_edits_nothing(people: People, browser: Client) -> None:
    store_text(browser)
    version = CodeVersion.objects.get()
    viewer = browser_of(people.viewer)
    assert viewer.get(edit_address(version, "model.py")).status_code == 403
    assert "/edit?" not in viewer.get(f"/code/{version.digest}?project=yard").content.decode()
