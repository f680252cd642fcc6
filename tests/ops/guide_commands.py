"""The shell commands of the pages in `docs/guide`: tests run each of them as it is written.

A test takes a command by a part of its text, replaces texts such as names of hosts, and runs it:

    answer = command(18, "manage.py backup").run({"/srv/trainyard": str(home)}, TRAINYARD_HOME=str(home))

`commands(18)` returns all of a page, for a test with a case for each. `tests/ops/test_guide_commands.py`
finds both calls in the tests, and fails when a command of a page belongs to none.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
_BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SETTING = re.compile(r"(export|cd|umask|set|\.) |[A-Z_]+=\S*$")
"""A line that changes the shell for the lines after it."""
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


@dataclass(frozen=True)
class Command:
    """One command with the lines of its block that set variables or the folder for it."""

    page: int
    line: int
    setting: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{page_path(self.page).name}:{self.line}: {self.text}"

    def script(self, replacements: Mapping[str, str] | None = None) -> str:
        """Return a shell script that runs the command, with each replacement made wherever it fits.

        Raises:
            AssertionError: a text to replace is not in it.
        """
        script = "\n".join((*self.setting, self.text))
        for old, new in (replacements or {}).items():
            assert old in script, f"{old!r} is not in {self}"
            script = script.replace(old, new)
        return script

    def run(
        self,
        replacements: Mapping[str, str] | None = None,
        *,
        cwd: Path = ROOT,
        timeout: float = 120,
        **env: str,
    ) -> "subprocess.CompletedProcess[str]":
        """Run the command in the root of the sources, and return its end and its output."""
        return subprocess.run(
            ["sh", "-euc", self.script(replacements)],
            cwd=cwd, env=os.environ | env, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def start(
        self,
        replacements: Mapping[str, str] | None = None,
        *,
        log: Path,
        cwd: Path = ROOT,
        prefix: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        **env: str,
    ) -> "subprocess.Popen[bytes]":
        """Start a command that does not end by itself, without a shell above it, in a session of its own.

        Args:
            replacements: texts of the page and those that replace them.
            log: the file of its output.
            cwd: the folder of the program.
            prefix: a program with arguments that starts the shell, such as one for another network namespace.
            environment: all variables but `env`; those of this process by default.
            env: additional variables.
        """
        started = replace(self, text=f"exec env {self.text}")
        with log.open("ab") as file:
            return subprocess.Popen(
                [*prefix, "sh", "-euc", started.script(replacements)],
                cwd=cwd,
                env={**(os.environ if environment is None else environment), **env},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )


def page_path(page: int) -> Path:
    """Return the file of a page by its number."""
    [path] = GUIDE.glob(f"{page}-*.md")
    return path


def pages() -> list[int]:
    """Return the numbers of all pages."""
    return sorted(int(path.name.split("-")[0]) for path in GUIDE.glob("*.md"))


def commands(page: int) -> list[Command]:
    """Return all commands of the `sh` blocks of a page.

    Lines that end with a backslash and here-documents belong to the command before them. Lines such as
    `export` belong to the commands after them in their block; they are a command when the block has no other.
    """
    text = page_path(page).read_text(encoding="utf-8")
    found = []
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(2)) + 1
        indent = len(block[1])
        found += _commands_of_block(page, first, [line[indent:] for line in block[2].splitlines()])
    return found


def command(page: int, part: str) -> Command:
    """Return the one command of a page whose text contains `part`, or ends with it if several contain it."""
    every = commands(page)
    choices = (
        [each for each in every if each.text.endswith(part)],
        [each for each in every if part in each.text],
        [each for each in every if part in each.script()],
    )
    found = next((choice for choice in choices if choice), [])
    assert len(found) == 1, (
        f"{part!r} is in {len(found)} commands of page {page}: {[str(each) for each in found]}"
    )
    return found[0]


def _commands_of_block(page: int, first: int, lines: list[str]) -> list[Command]:
    settings: list[str] = []
    found: list[Command] = []
    number = 0
    while number < len(lines):
        start, number = number, _end_of_command(lines, number)
        text = "\n".join(lines[start:number])
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        if _SETTING.match(text):
            settings.append(text)
        else:
            found.append(Command(page, first + start, tuple(settings), text))
    if settings and not found:
        found.append(Command(page, first, tuple(settings[:-1]), settings[-1]))
    return found


def _end_of_command(lines: list[str], start: int) -> int:
    """Return the index of the line after a command."""
    end = start
    while end + 1 < len(lines) and lines[end].endswith("\\"):
        end += 1
    if heredoc := _HEREDOC.search(lines[start]):
        while end + 1 < len(lines) and lines[end].strip() != heredoc[1]:
            end += 1
    return end + 1
