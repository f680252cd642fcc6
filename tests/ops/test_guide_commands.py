"""A test runs each command of the guide's pages for operators, and each command that a page names exists."""

import ast
import re
from argparse import ArgumentParser
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tests.ops import guide_commands
from tests.ops.guide_commands import Command, command, commands, page_path, pages

FIRST = 13
"""The pages before are for the people who train; their examples are run by tests of their own."""
TESTS = Path(__file__).resolve().parents[1]
_NAMED = re.compile(r"`(?:\.venv/bin/python )?manage\.py ([a-z-]+)([^`]*)`")
OF_OPERATORS = [number for number in pages() if number >= FIRST]


def test_every_command_of_the_pages_for_operators_is_run_by_a_test() -> None:
    whole, single = _calls()
    run = {command(page, part) for page, part in single}
    missing = [
        each for page in OF_OPERATORS if page not in whole for each in commands(page) if each not in run
    ]
    assert not missing, "no test takes these commands:\n" + "\n".join(map(str, missing))


@pytest.mark.parametrize("page", OF_OPERATORS)
def test_commands_for_a_shell_are_in_blocks_that_tests_read(page: int) -> None:
    languages = re.findall(r"^ *```(\S+)$", page_path(page).read_text(encoding="utf-8"), re.MULTILINE)
    assert not set(languages) & {"bash", "shell", "console", "zsh"}, "write sh"


@pytest.mark.parametrize("page", OF_OPERATORS)
def test_each_named_command_of_manage_exists_with_its_options(page: int) -> None:
    blocks = "\n".join(f"`{each.text}`" for each in commands(page) if "\n" not in each.text)
    for name, rest in _NAMED.findall(page_path(page).read_text(encoding="utf-8") + "\n" + blocks):
        assert _module(name) in get_commands(), f"manage.py {name} is on page {page}"
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert option in _options(name), f"manage.py {name} {option} is on page {page}"


def test_a_block_is_divided_into_its_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(guide_commands, "GUIDE", tmp_path)
    (tmp_path / "99-page.md").write_text(
        "Text.\n\n```sh\n# Why.\nexport A=1\necho one \\\n  two\n\ncat <<EOF\nthree\nEOF\n```\n\n"
        "- in a list\n\n  ```sh\n  export B=2\n  ```\n\n```python\nno()\n```\n"
    )
    assert commands(99) == [
        Command(99, 6, ("export A=1",), "echo one \\\n  two"),
        Command(99, 9, ("export A=1",), "cat <<EOF\nthree\nEOF"),
        Command(99, 17, (), "export B=2"),
    ]
    assert command(99, "one").run({"two": "$A"}).stdout == "one 1\n"
    with pytest.raises(AssertionError, match=r"'four' is not in 99-page\.md:6: echo one"):
        command(99, "one").script({"four": "4"})
    with pytest.raises(AssertionError, match="'e' is in 3 commands of page 99"):
        command(99, "e")


def _module(name: str) -> str:
    """Return the module of a command, which may be written with dashes."""
    return name.replace("-", "_")


def _options(name: str) -> set[str]:
    module = _module(name)
    command_class = load_command_class(get_commands()[module], module)
    parser: ArgumentParser = command_class.create_parser("manage.py", name)
    return {option for action in parser._actions for option in action.option_strings}


def _calls() -> tuple[set[int], set[tuple[int, str]]]:
    """Return the pages that tests take whole, and the parts of commands that they take singly."""
    whole: set[int] = set()
    single: set[tuple[int, str]] = set()
    for path in sorted(TESTS.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if path == Path(__file__) or "guide_commands" not in source:
            continue
        tree = ast.parse(source)
        numbers = _constants(tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            values = [_value(argument, numbers) for argument in call.args]
            match name, values:
                case "commands", [int(page)]:
                    whole.add(page)
                case "command", [int(page), str(part)]:
                    single.add((page, part))
    return whole, single


def _constants(tree: ast.Module) -> dict[str, object]:
    """Return the constants of a module, such as the number of its page."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _value(node: ast.expr, constants: dict[str, object]) -> object:
    return node.value if isinstance(node, ast.Constant) else constants.get(getattr(node, "id", ""))
