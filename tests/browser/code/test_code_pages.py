"""Code in use: pasting, choosing and dropping a folder, linking lines, comparing."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from jobs.models import CodeVersion
from tests.browser.looking import Look
from tests.code.making import MODEL
from tests.people import People

Open = Callable[..., Page]

DROP_FOLDER = """place => {
    const file = (fullPath, text) => ({
        isDirectory: false, fullPath,
        file: take => take(new File([text], fullPath.split("/").at(-1))),
    });
    const folder = (fullPath, entries) => ({
        isDirectory: true, fullPath,
        createReader: () => ({readEntries: take => take(entries.splice(0, 2))}),
    });
    const dropped = folder("/shop", [
        file("/shop/net.py", "import layers.dense\\n"),
        folder("/shop/layers", [file("/shop/layers/dense.py", "x = 1\\n")]),
        file("/shop/.env", "secret\\n"),
        folder("/shop/__pycache__", [file("/shop/__pycache__/net.pyc", "")]),
    ]);
    const event = new Event("drop", {bubbles: true, cancelable: true});
    const transfer = {items: [{webkitGetAsEntry: () => dropped}], files: []};
    Object.defineProperty(event, "dataTransfer", {value: transfer});
    place.dispatchEvent(event);
}"""
"""Only a person can drop a real folder."""


def paths() -> list[str]:
    return sorted(file.path for file in CodeVersion.objects.get().files.all())


def test_pasted_code_is_stored_shown_and_compared(people: People, open_as: Open, look: Look) -> None:
    page = open_as(people.member, "/code")
    look(page, "code-empty")
    page.locator("main .empty").get_by_role("link", name="New version").click()
    page.get_by_role("link", name="Paste").click()
    look(page, "code-paste")
    page.get_by_role("textbox", name="Python code").fill(MODEL)
    page.get_by_label("Name").fill("shop net")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("shop net")
    look(page, "code-version")
    page.get_by_role("link", name="build_model").click()
    expect(page).to_have_url(re.compile(r"#L22$"))
    expect(page.locator(".cd-line:target")).to_contain_text("def build_model(hp):")

    page.get_by_role("link", name="New version").click()
    expect(page.get_by_label("Name")).to_have_value("shop net")
    editor = page.get_by_role("textbox", name="model.py")
    expect(editor).to_contain_text("def build_model(hp):")
    look(page, "code-edit")
    editor.fill("")
    page.get_by_role("button", name="Store").click()
    # The browser refuses the empty field behind the editor, and the editor has the focus.
    expect(editor).to_be_focused()
    editor.fill(MODEL.replace("2.0", "3.0"))
    page.keyboard.press("Control+End")
    page.keyboard.type("if True:\nx = 1")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Name")).to_be_focused()
    page.get_by_role("button", name="Store").click()
    # A new line after a colon is indented.
    expect(page.locator(".cd-source")).to_contain_text("    x = 1")
    page.get_by_role("link", name="Compare", exact=True).first.click()
    expect(page.locator(".cd-added mark")).to_have_text("3")
    expect(page.locator(".cd-removed mark")).to_have_text("2")
    look(page, "code-compare")
    page.goto("/code")
    look(page, "code-list")


def test_a_chosen_folder_keeps_its_paths(people: People, open_as: Open, look: Look, tmp_path: Path) -> None:
    for name, text in [("net.py", MODEL), ("layers/dense.py", "x = 1\n"), (".git/config", "")]:
        place = tmp_path / "shop" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    page = open_as(people.member, "/code/new")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a folder").click()
    chooser.value.set_files(tmp_path / "shop")
    expect(page.locator("[data-chosen]")).to_contain_text("shop/layers/dense.py")
    look(page, "code-new")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("shop")
    assert paths() == ["layers/dense.py", "net.py"]


def test_a_dropped_folder_keeps_its_paths_without_hidden_files(people: People, open_as: Open) -> None:
    page = open_as(people.member, "/code/new")
    page.locator("[data-drop]").evaluate(DROP_FOLDER)
    expect(page.locator("[data-chosen]")).to_have_text("Chosen: shop/net.py, shop/layers/dense.py")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("shop")
    assert paths() == ["layers/dense.py", "net.py"]


def test_too_many_files_are_named_before_they_are_sent(people: People, open_as: Open, tmp_path: Path) -> None:
    for number in range(101):
        (tmp_path / f"{number}.py").write_text("")
    page = open_as(people.member, "/code/new")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a folder").click()
    chooser.value.set_files(tmp_path)
    expect(page.locator("[data-chosen]")).to_have_text("These are more than 100 files: send them as a zip.")


def test_all_ways_to_choose_files_have_one_check(people: People, open_as: Open, tmp_path: Path) -> None:
    for number in range(101):
        (tmp_path / f"{number}.py").write_text("")
    (tmp_path / ".hidden.py").write_text("")
    page = open_as(people.member, "/code/new")
    field, chosen = page.get_by_label("Files"), page.locator("[data-chosen]")
    field.set_input_files([tmp_path / f"{number}.py" for number in range(101)])
    expect(chosen).to_have_text("These are more than 100 files: send them as a zip.")
    field.set_input_files([tmp_path / ".hidden.py"])
    expect(chosen).to_have_text("Nothing to send: hidden and compiled files are left out.")
    field.set_input_files([tmp_path / "1.py", tmp_path / ".hidden.py"])
    expect(chosen).to_have_text("Chosen: 1.py")
