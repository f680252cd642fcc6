"""Divides a file into runs of text with a style each, by Pygments."""

from pathlib import Path

from pygments.lexer import Lexer
from pygments.lexers.configs import IniLexer, TOMLLexer
from pygments.lexers.data import JsonLexer, YamlLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.shell import BashLexer
from pygments.token import STANDARD_TYPES, _TokenType

from jobs.contracts.code import Highlighted, HighlightRequest
from workers.code_reader.files import lines_of
from workers.code_reader.limits import OutOfTime, at_most

SECONDS = 3.0
LEXERS: dict[str, type[Lexer]] = {
    ".py": PythonLexer,
    ".pyi": PythonLexer,
    ".toml": TOMLLexer,
    ".ini": IniLexer,
    ".cfg": IniLexer,
    ".json": JsonLexer,
    ".yaml": YamlLexer,
    ".yml": YamlLexer,
    ".sh": BashLexer,
}
"""By the end of the name; other files have no styles. None is guessed from the content."""

type Run = tuple[str, str]


def highlight(request: HighlightRequest) -> Highlighted:
    """Return the runs of each line. What takes too long has no styles."""
    text = "\n".join(lines_of(Path(request.place).read_bytes().decode("utf-8-sig", "replace")))
    kind = LEXERS.get(Path(request.path).suffix)
    if kind is None:
        return Highlighted(lines=_plain(text), is_complete=True)
    lines: list[list[Run]] = [[]]
    done = 0
    try:
        with at_most(SECONDS):
            # Lexers strip and end lines by themselves otherwise, and numbers of lines would differ.
            for kind_of_run, run in kind(stripnl=False, ensurenl=False).get_tokens(text):
                _add(lines, _css_class(kind_of_run), run)
                done += len(run)
    except OutOfTime:
        rest = _plain(text[done:])
        lines[-1] += rest[0]
        return Highlighted(lines=[*lines, *rest[1:]], is_complete=False)
    return Highlighted(lines=lines, is_complete=True)


def _add(lines: list[list[Run]], css_class: str, text: str) -> None:
    """Append a run, which may have several lines."""
    for number, part in enumerate(text.split("\n")):
        if number:
            lines.append([])
        if part:
            lines[-1].append((css_class, part))


def _css_class(kind: _TokenType) -> str:
    # Types of a single lexer have no class of their own; that of the more general type is used.
    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    return str(STANDARD_TYPES.get(kind, ""))


def _plain(text: str) -> list[list[Run]]:
    return [[("", line)] if line else [] for line in text.split("\n")]
