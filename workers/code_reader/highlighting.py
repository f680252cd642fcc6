"""Divides a file into text runs with a style each, by Pygments."""

from pathlib import Path

from pygments.lexer import Lexer
from pygments.lexers.configs import IniLexer, TOMLLexer
from pygments.lexers.data import JsonLexer, YamlLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.shell import BashLexer
from pygments.token import STANDARD_TYPES, _TokenType

from jobs.messages.code import MAX_RUNS, MAX_SHOWN_LINES, Highlighted, HighlightRequest
from jobs.messages.code_text import lines_of, with_visible_marks
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
    """Return each line's runs. What takes too long, or has too many parts, has no styles."""
    lines = lines_of(Path(request.place).read_bytes().decode("utf-8-sig", "replace"))
    is_cut = len(lines) > MAX_SHOWN_LINES
    text = with_visible_marks("\n".join(lines[:MAX_SHOWN_LINES]))
    kind = LEXERS.get(Path(request.path).suffix)
    if kind is None:
        return Highlighted(lines=_plain(text), is_cut=is_cut)
    styled, note = _StyledLines(), ""
    try:
        with at_most(SECONDS):
            # Lexers strip and end lines by themselves otherwise, and numbers of lines would differ.
            for kind_of_run, run in kind(stripnl=False, ensurenl=False).get_tokens(text):
                if styled.count >= MAX_RUNS:
                    note = "The file has too many parts to highlight, so the rest is shown without colours."
                    break
                styled.add(_css_class(kind_of_run), run)
    except OutOfTime:
        note = "The file took too long to highlight, so the rest is shown without colours."
    if note:
        styled.add("", text[styled.length :])
    return Highlighted(lines=styled.runs(), is_cut=is_cut, note=note)


class _StyledLines:
    """Collects runs by line. It is valid after each step: an alarm may come between any two."""

    def __init__(self) -> None:
        self._lines: list[list[tuple[str, list[str]]]] = [[]]
        self.count = 0

    @property
    def length(self) -> int:
        """Return how many characters there are, with line ends."""
        texts = (part for line in self._lines for _, parts in line for part in parts)
        return sum(map(len, texts)) + len(self._lines) - 1

    def add(self, css_class: str, text: str) -> None:
        """Append a run, which may have several lines. Neighbours with one class become one run."""
        for number, part in enumerate(text.split("\n")):
            if number:
                self._lines.append([])
            line = self._lines[-1]
            if part and line and line[-1][0] == css_class:
                line[-1][1].append(part)
            elif part:
                line.append((css_class, [part]))
                self.count += 1

    def runs(self) -> list[list[Run]]:
        """Return each line's runs."""
        return [[(css_class, "".join(parts)) for css_class, parts in line] for line in self._lines]


def _css_class(kind: _TokenType) -> str:
    # Types of a single lexer have no class of their own; that of the more general type is used.
    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    return str(STANDARD_TYPES.get(kind, ""))


def _plain(text: str) -> list[list[Run]]:
    return [[("", line)] if line else [] for line in text.split("\n")]
