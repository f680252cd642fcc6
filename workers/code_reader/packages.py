"""Reads the packages that code asks for: requirements.txt and pyproject.toml."""

import re
import tomllib

from jobs.messages.code import MAX_TEXT, CodePackages, CodeProblem
from jobs.messages.code_text import lines_of
from jobs.spec.checks.packages import MAX_REQUIREMENTS
from workers.code_reader.files import SourceFile
from workers.code_reader.modules import printable

_COMMENT = re.compile(r"(^|\s)#.*$")
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


class UnreadablePackages(Exception):
    """A file that should list packages cannot be read."""

    def __init__(self, problem: CodeProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def requirements(file: SourceFile) -> CodePackages:
    """Return the lines in a requirements.txt without comments.

    Raises:
        UnreadablePackages: it is not text.
    """
    # A backslash at the end of a line continues it.
    joined = re.sub(r"\\\r?\n", " ", _text(file))
    lines = (_COMMENT.sub("", line).strip() for line in lines_of(joined))
    return CodePackages(path=file.path, requirements=_kept(file, [line for line in lines if line]))


def project(file: SourceFile) -> CodePackages | None:
    """Return the dependencies in a pyproject.toml; None if it is about something else, such as a linter.

    Raises:
        UnreadablePackages: it is not TOML, or its dependencies are not a list with texts only.
    """
    try:
        table = tomllib.loads(_text(file)).get("project")
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(message := str(error))
        line, column = (int(place[1]), int(place[2])) if place else (None, None)
        raise _unreadable(file, printable(message), line, column) from error
    except RecursionError as error:
        raise _unreadable(file, "is nested too deeply") from error
    if table is None:
        return None
    requirements = table.get("dependencies", []) if isinstance(table, dict) else None
    if not isinstance(requirements, list) or not all(isinstance(text, str) for text in requirements):
        raise _unreadable(file, "project.dependencies must be a list of texts")
    python = table.get("requires-python")
    return CodePackages(
        path=file.path,
        requirements=_kept(file, requirements),
        python=printable(python) if isinstance(python, str) else None,
    )


def _kept(file: SourceFile, requirements: list[str]) -> list[str]:
    """Return the requirements for storing. None is cut or left out, since they are installed."""
    if len(requirements) > MAX_REQUIREMENTS:
        raise _unreadable(file, f"has more than {MAX_REQUIREMENTS} requirements")
    if long := next((text for text in requirements if len(text) > MAX_TEXT), None):
        raise _unreadable(file, f"has a requirement with more than {MAX_TEXT} characters: {printable(long)}")
    return [printable(text) for text in requirements]


def _text(file: SourceFile) -> str:
    if file.text is None:
        raise _unreadable(file, "is not text in UTF-8")
    return file.text


def _unreadable(
    file: SourceFile, message: str, line: int | None = None, column: int | None = None
) -> UnreadablePackages:
    return UnreadablePackages(CodeProblem(path=file.path, line=line, column=column, message=message))
