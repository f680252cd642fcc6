"""The code pages."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.messages.code import Highlighted
from jobs.models import CodeFile, CodeVersion
from jobs.spec.base import Frozen
from tests.code.making import MODEL, zipped
from tests.code_reading import real_process  # noqa: F401  a fixture
from tests.markup import squeezed
from tests.people import People, browser_of, make_person
from webapp import code_reader
from webapp.pages.code import comparison as pages


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.member)


def store(browser: Client, text: str = MODEL, **fields: Any) -> str:
    answer = browser.post("/code/new?from=text", {"project": "yard", "text": text, **fields})
    assert answer.status_code == 303, answer.content
    return str(answer["Location"])


def store_files(browser: Client, files: dict[str, str | bytes], **fields: Any) -> str:
    form = {"project": "yard", "file": SimpleUploadedFile("net.zip", zipped(files)), **fields}
    answer = browser.post("/code/new", form)
    assert answer.status_code == 303, answer.content
    return str(answer["Location"])


def test_an_empty_list_names_the_next_step_and_what_code_is_good_for(people: People, browser: Client) -> None:
    page = squeezed(browser.get("/code").content.decode())
    assert 'href="/code/new"' in page
    assert "Paste a function build_model(hp), or send Python files, a folder or a zip." in page
    assert "A job executes it in a sandbox" in page
    viewer = squeezed(browser_of(people.viewer).get("/code").content.decode())
    assert "Your role only reads." in viewer
    assert 'href="/code/new"' not in viewer
    new = squeezed(browser_of(make_person("new")).get("/code").content.decode())
    assert "You are in no project yet" in new and "Your role only reads." not in new


@pytest.mark.usefixtures("real_process")
def test_a_version_shows_its_source_with_numbers_that_can_be_linked(browser: Client) -> None:
    page = browser.get(store(browser)).content.decode()
    assert '<span class="cd-line" id="L22"><a href="#L22">22</a><span class="cd-k">def</span>' in page
    assert "style=" not in page.partition("<main")[2].partition("</main>")[0], "the policy forbids it"
    assert "#L11" in page, "the class is linked"
    text = squeezed(page)
    assert "<code>classes: int</code>" in text
    assert "<code>wide = False</code>" in text
    assert "HyperModel with build and fit" in text
    assert "saved as <code>shop&gt;Doubled</code>" in text


def test_source_is_text_and_no_markup(browser: Client) -> None:
    source = "x = '<script>alert(1)</script>'  # &amp;\ndef build_model(hp, a='<b>'): ...\n"
    page = browser.get(store(browser, source)).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&amp;amp;" in page
    assert "a = &#x27;&lt;b&gt;&#x27;" in squeezed(page)


def test_another_file_is_shown_by_its_address(browser: Client) -> None:
    address = store_files(browser, {"model.py": MODEL, "notes.md": "read me\n", "a.bin": b"\0"})
    notes = browser.get(f"{address}&file=notes.md").content.decode()
    assert "read me" in notes
    assert 'aria-current="true" >notes.md' in squeezed(notes)
    assert "It is not text." in browser.get(f"{address}&file=a.bin").content.decode()
    assert browser.get(f"{address}&file=other").status_code == 404


def test_a_syntax_error_is_shown_with_a_link_to_its_line(browser: Client) -> None:
    address = store_files(browser, {"model.py": MODEL, "bad.py": "x = 1\ny = (\n"})
    page = browser.get(address).content.decode()
    assert "file=bad.py#L2" in page
    assert "bad.py, line 2, column 5" in squeezed(page)
    assert "1 unreadable" in squeezed(browser.get("/code").content.decode())


def test_a_refused_form_keeps_its_text_and_names_the_field(browser: Client) -> None:
    answer = browser.post("/code/new?from=text", {"project": "yard", "text": MODEL, "name": "x" * 101})
    page = answer.content.decode()
    assert (answer.status_code, 'href="#at/name"' in page) == (422, True)
    assert "class Net(kt.HyperModel):" in page
    empty = browser.post("/code/new", {"project": "yard"})
    assert (empty.status_code, "choose files" in empty.content.decode()) == (422, True)


def test_the_same_text_leads_to_the_version_that_exists(browser: Client) -> None:
    address = store(browser, name="net")
    assert store(browser, name="other") == address
    assert "already there" in browser.get(address).content.decode()


def test_a_folder_with_its_paths_is_stored(browser: Client) -> None:
    files = [
        SimpleUploadedFile(name, text) for name, text in [("dense.py", b"x = 1\n"), ("net.py", b"y = 1\n")]
    ]
    form = {"project": "yard", "file": files, "path": ["shop/layers/dense.py", "shop/net.py"]}
    assert browser.post("/code/new", form).status_code == 303
    version = CodeVersion.objects.get()
    assert version.name == "shop"
    assert sorted(file.path for file in version.files.all()) == ["layers/dense.py", "net.py"]


@pytest.mark.usefixtures("real_process")
def test_two_versions_are_compared_with_the_words_that_differ(browser: Client) -> None:
    old = store(browser, "size = 16\nname = 'a'\n", name="net")
    new = store(browser, "size = 32\nname = 'a'\n", name="net")
    page = browser.get(new.replace("?", "/compare?")).content.decode()
    assert '<tr class="cd-removed"><td class="cd-number">1</td><td class="cd-number"></td>' in page
    assert "size = <mark>16</mark>" in page
    assert "size = <mark>32</mark>" in page
    assert "1 file differs, 0 are equal." in squeezed(page)
    assert "/compare?" in browser.get(new).content.decode()
    assert old != new


def test_the_shown_version_is_offered_also_if_it_is_old(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_OTHERS", 1)
    for number in range(3):
        store(browser, f"offered = {number}\n", name="net")
    old, _, new = CodeVersion.objects.order_by("pk")
    page = browser.get(f"/code/{new.digest}/compare?project=yard&old={old.digest}").content.decode()
    assert squeezed(page).count(" of 20") == 2
    assert f'value="{old.digest}" selected' in squeezed(page)


def test_a_list_names_four_entries_and_counts_the_others(browser: Client) -> None:
    store(browser, "import keras\n" + "".join(f"class A{n}(keras.Layer): ...\n" for n in range(6)))
    with CaptureQueriesContext(connection) as statements:
        page = squeezed(browser.get("/code").content.decode())
    assert ("A3</span>" in page, "A4</span>" in page, "and 2 more" in page) == (True, False, True)
    # The findings may have a megabyte for each version.
    assert not any('"jobs_codeversion"."found"' in statement["sql"] for statement in statements)


def test_a_lone_version_has_nothing_to_be_compared_with(browser: Client) -> None:
    address = store(browser)
    assert "/compare?" not in browser.get(address).content.decode()
    assert "no other version" in browser.get(address.replace("?", "/compare?")).content.decode()


def test_versions_that_take_too_long_to_compare_say_so(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(browser, "slow = 1\n")
    new = store(browser, "slow = 2\n")
    monkeypatch.setattr(code_reader, "PROGRAM", ("/bin/false",))
    page = browser.get(new.replace("?", "/compare?"))
    assert (page.status_code, b"too much time or memory to compare" in page.content) == (200, True)


def test_source_is_shown_plainly_if_the_reader_ends(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    address = store(browser, "# plain <text>\nx = 1\n")
    monkeypatch.setattr(code_reader, "PROGRAM", ("/bin/false",))
    page = browser.get(address).content.decode()
    assert "# plain &lt;text&gt;\n</span>" in page
    assert "too much time or memory to highlight" in page
    monkeypatch.setattr(code_reader, "_ask", None)
    assert "too much time or memory" in browser.get(address).content.decode(), "it is not tried again at once"


def test_source_is_shown_plainly_while_other_code_is_read(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = store(browser, "# first\x0cline\nx = 1\n")
    monkeypatch.setattr(code_reader, "_views", threading.BoundedSemaphore(1))
    monkeypatch.setattr(code_reader, "COLOURS_WAIT_SECONDS", 0.0)
    with code_reader._views:
        page = browser.get(address).content.decode()
    assert "The server is reading other code" in page
    assert 'id="L2"' in page
    assert 'id="L3"' not in page, "a form feed ends no line"
    assert "reading other code" not in browser.get(address).content.decode(), "it was no failure"


def test_a_file_of_many_lines_is_cut_and_its_text_can_be_fetched(browser: Client) -> None:
    address = store(browser, "x = 1\n" + "\n" * 500_000)
    page = browser.get(address).content.decode()
    assert len(page) < 2_000_000
    assert "Further lines are not shown." in page
    (link,) = re.findall(r'href="(/api/v1/code/[^"]+/text[^"]+)"', page)
    assert len(browser.get(unescape(link)).json()["text"]) > 500_000


def test_one_process_answers_all_who_ask_at_once(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store(browser, "# asked by several\n")
    file, answer, asked, go_on = CodeFile.objects.get(), Highlighted(lines=[]), [], threading.Event()

    def slow(request: Frozen, kind: type[Highlighted]) -> Highlighted:
        asked.append(request)
        go_on.wait(20)
        return answer

    monkeypatch.setattr(code_reader, "_ask", slow)
    monkeypatch.setattr(code_reader, "COLOURS_WAIT_SECONDS", 20.0)
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(code_reader.highlight_file, file) for _ in range(4)]
        go_on.set()
        assert [pending.result() for pending in answers] == [answer] * 4
    assert len(asked) == 1


def test_the_search_finds_code_by_name_and_digest(browser: Client) -> None:
    store(browser, name="shop net")
    digest = CodeVersion.objects.get().digest
    for text in ("shop", digest[:10]):
        assert f"/code/{digest}" in browser.get(f"/search?q={text}").content.decode()


def test_a_version_is_deleted_from_its_page(browser: Client) -> None:
    address = store(browser)
    version = CodeVersion.objects.get()
    assert f'href="/delete/code/{version.pk}"' in browser.get(address).content.decode()
    assert browser.post(f"/delete/code/{version.pk}")["Location"] == "/code"
    assert not CodeVersion.objects.exists()


def test_the_navigation_leads_to_the_code(browser: Client) -> None:
    assert 'href="/code"' in browser.get("/").content.decode()
