"""Parses one Python file, and resolves the names that it imports."""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.messages.code import MAX_FOUND, MAX_TEXT, CodeProblem
from workers.code_reader.files import SourceFile

MAGIC = re.compile(r"^\s*([!%?]|[\w, ]+=\s*[!%]|[\w.]+\?{1,2}\s*$)")
"""A line of a notebook that is no Python: a command of the shell, or of IPython."""

MAX_PARSED_AGAIN = 32 * 2**20
"""How many characters of a file are parsed again after lines of a notebook were left out."""


class Unreadable(Exception):
    """A file cannot be parsed."""

    def __init__(self, problem: CodeProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass
class Module:
    """A parsed file.

    Attributes:
        path: the file's path.
        tree: its syntax tree.
        imported: each imported name's full name, such as `HM` → `keras_tuner.HyperModel`. Names from the
            version itself begin with its outermost folder if they are imported with dots.
        magics: the lines that a notebook alone understands. They are no Python.
    """

    path: str
    tree: ast.Module
    imported: dict[str, str]
    _lines: list[bytes] = field(repr=False)
    magics: list[int] = field(default_factory=list)

    @classmethod
    def parse(cls, file: SourceFile) -> "Module":
        """Parse a file.

        Raises:
            Unreadable: it has a syntax error, is not UTF-8, or is nested too deeply.
        """
        if file.text is None:
            message = "is not text in UTF-8: save it as UTF-8"
            raise Unreadable(CodeProblem(path=file.path, message=message))
        try:
            tree, text, magics = _parsed_without_magics(file.text, file.path)
        except SyntaxError as error:
            problem = CodeProblem(
                path=file.path, line=error.lineno, column=error.offset, message=printable(error.msg)
            )
            raise Unreadable(problem) from error
        except (RecursionError, MemoryError, ValueError) as error:
            message = "is nested too deeply, or too large, to be parsed"
            raise Unreadable(CodeProblem(path=file.path, message=message)) from error
        lines = text.encode().splitlines(keepends=True)
        return cls(file.path, tree, _imports(tree, file.path), lines, magics)

    @property
    def dotted(self) -> str:
        """Return the name under which the file is imported."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def lines(self) -> list[str]:
        """Return the lines, with their ends; a line that is no Python is an empty statement."""
        return [line.decode("utf-8", "replace") for line in self._lines]

    def line(self, number: int) -> str:
        """Return a line, without its end."""
        line = self._lines[number - 1] if number <= len(self._lines) else b""
        return line.decode("utf-8", "replace").rstrip()

    def source(self, node: ast.expr | None) -> str | None:
        """Return an expression as it is written, on one line; None without one.

        One that was computed has no place in the file, and is written in the usual way.
        """
        if node is None:
            return None
        if node.end_lineno is None or node.end_col_offset is None:
            text = " ".join(ast.unparse(node).split())
            return printable(text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…")
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        if not lines:
            return None
        # The end first: with a single line, both are cut.
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        text = " ".join(b"".join(lines).decode("utf-8", "replace").split())
        return printable(text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…")

    def full_name(self, node: ast.expr) -> str:
        """Return the full name for a name or an attribute, such as `keras.layers.Layer`; empty for others."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.imported.get(node.id, node.id), *reversed(parts)])[:MAX_TEXT]


def _parsed(text: str, path: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, filename=path)


def _parsed_without_magics(text: str, path: str) -> tuple[ast.Module, str, list[int]]:
    """Parse a text in which the lines of a notebook that are no Python do nothing.

    Returns:
        The syntax tree, the text that was parsed, and the numbers of these lines.

    Raises:
        SyntaxError: another line is no Python, or there are too many of these.
    """
    numbers: list[int] = []
    # Those of a text would also end at a form feed, which the parser does not count.
    lines = [line.decode() for line in text.encode().splitlines(keepends=True)]
    left = MAX_PARSED_AGAIN
    while True:
        try:
            return _parsed(text, path), text, sorted(numbers)
        except SyntaxError as error:
            place = (error.lineno or 0) - 1
            left -= len(text)
            # Other lines may begin like one of these inside of a text or of brackets.
            if not 0 <= place < len(lines) or not MAGIC.match(lines[place]) or left < 0:
                raise
            line = lines[place]
            indent = line[: len(line) - len(line.lstrip())]
            lines[place] = f"{indent}pass  # {line.strip()}\n"
            numbers.append(place + 1)
            text = "".join(lines)


def _imports(tree: ast.Module, path: str) -> dict[str, str]:
    folders = path.split("/")[:-1]
    imported: dict[str, str] = {}
    # Also those inside of functions and conditions.
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                imported[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            # One dot is the folder of the file, each further dot the folder around it.
            around = folders[: len(folders) + 1 - node.level] if node.level else []
            package = [*around, *filter(None, [node.module])]
            for alias in node.names:
                imported[alias.asname or alias.name] = ".".join([*package, alias.name])
    return imported


def printable(text: str) -> str:
    """Return a text from the code that can be stored and shown: short, and without control characters."""
    # An escape in a constant may be a NUL or half a character, which no database and no JSON accepts.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:MAX_TEXT])


def list_of_names(names: Sequence[str]) -> str | None:
    """Return names as a list of Python, which is complete; None for too many."""
    return repr([printable(name) for name in names]) if len(names) <= MAX_FOUND else None


def constant(node: ast.expr | None) -> object:
    """Return a constant's value; None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None
