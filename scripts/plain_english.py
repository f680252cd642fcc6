"""Finds phrases of private language in docstrings, comments, messages, pages and documents.

Prints the file, line, phrase and a suggestion for each, and exits with status 1 if there are any. Texts
should be plain English: short declarative sentences with the terms of the field. Without arguments it checks
the folders in `ENFORCED`, else the given files and folders.
"""

import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ENFORCED = (
    "jobs",
    "transport",
    "webapp",
    "workers",
    "templates",
    "docs",
    "scripts",
    "benchmarks",
    "tests",
    "README.md",
    "CHANGELOG.md",
)
"""Files and folders that must be free of these phrases."""

ALLOWED = {
    "scripts/plain_english.py": "contains the phrases",
    "tests/architecture/test_plain_english.py": "contains the phrases",
}
"""Files and folders that are not checked, with the reason."""

PHRASES = {
    r"(?:no|some|any|every)body(?:'s)?|whoever": "name the actor (user, process, caller) or use the passive",
    r"go(?:es|ing)? on|went on|gone on": "continue, resume",
    r"tak(?:e|es|en|ing) back|took back": "undo, withdraw, unarchive",
    r"takes? in|taken in": "record, accept",
    r"stands|stand (?:still|at|in|for|by)|stood": "is, is stored, remains",
    r"hears?|heard": "read, receive",
    r"says?|said|saying|told|tells?": "report, state, return, show",
    r"lets? (?:go|it|them|so)": "release, allow; or state the effect directly",
    r"com(?:e|es) to be": "become",
    r"what (?:is|it|its|a|an|the|was|were|they|one|comes|becomes|ours?|others?)": "name the thing directly",
    r"by which|so many times|as it comes|as ever": "reword as a plain statement",
    r"anew": "again, new",
    r"nursery|leash|roster|dials?": "use the term of the field",
    r"takes? admin right|let in again|train for real": "use the button's new name",
}
"""Regular expressions of phrases, any whitespace for a space, and what to write instead."""

PATTERN = re.compile(
    "|".join(rf"(?P<p{i}>\b(?:{phrase})\b)" for i, phrase in enumerate(PHRASES)).replace(" ", r"\s+"),
    re.IGNORECASE,
)
SUGGESTIONS = tuple(PHRASES.values())

Text = tuple[int, str]
"""The number of its first line, and the text."""


def python_texts(path: Path) -> Iterator[Text]:
    """Yield docstrings, comments and those string literals that have a space."""
    strings = (tokenize.STRING, tokenize.FSTRING_MIDDLE)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            is_prose = token.type in strings and " " in token.string.strip()
            if is_prose or token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def document_texts(path: Path) -> Iterator[Text]:
    """Yield a Markdown document without its code."""
    yield 1, _blanked(path.read_text(encoding="utf-8"), r"```.*?```|`[^`]*`|\]\([^)]*\)")


def template_texts(path: Path) -> Iterator[Text]:
    """Yield the text and the comments of a template, and those strings in its tags that have a space."""
    scripts = r"<(?:script|style)\b.*?</(?:script|style)>"
    source = _blanked(path.read_text(encoding="utf-8"), scripts)
    yield 1, re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<(?!!--)[^>]*>", _tag_texts, source, flags=re.DOTALL)


def _tag_texts(tag: re.Match[str]) -> str:
    parts = re.findall(r"\n|\"[^\"]*\"|'[^']*'", tag[0])
    return " ".join(part for part in parts if " " in part or part == "\n") or " "


def script_texts(path: Path) -> Iterator[Text]:
    """Yield the comments of a script, and those string literals that have a space."""
    source = path.read_text(encoding="utf-8")
    texts = r"/\*.*?\*/|(?<!:)//[^\n]*|\"[^\"\n]* [^\"\n]*\"|'[^'\n]* [^'\n]*'|`[^`]* [^`]*`"
    for match in re.finditer(texts, source, re.DOTALL):
        yield 1 + source.count("\n", 0, match.start()), match[0]


def shell_texts(path: Path) -> Iterator[Text]:
    """Yield the comments of a shell script."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("#"):
            yield number, line


def _blanked(source: str, code: str) -> str:
    """Return `source` with all code replaced by its line breaks, so that line numbers stay."""
    return re.sub(code, lambda match: "\n" * match[0].count("\n") or " ", source, flags=re.DOTALL)


READERS = {
    ".py": python_texts,
    ".md": document_texts,
    ".html": template_texts,
    ".js": script_texts,
    ".ts": script_texts,
    ".css": script_texts,
    ".sh": shell_texts,
}


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the phrase and a suggestion of each phrase in a file."""
    for first, text in READERS[path.suffix](path):
        for match in PATTERN.finditer(text):
            line = first + text.count("\n", 0, match.start())
            yield line, " ".join(match[0].split()), SUGGESTIONS[int(str(match.lastgroup)[1:])]


def files_in(names: list[str]) -> Iterator[Path]:
    """Yield the files to check, and those in the folders to check, without the allowed ones."""
    allowed = [ROOT / name for name in ALLOWED]
    for start in (ROOT / name for name in names):
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.suffix in READERS and not any(path.is_relative_to(name) for name in allowed):
                yield path


def main() -> int:
    """Check the files and return the exit status."""
    status = 0
    for path in files_in(sys.argv[1:] or list(ENFORCED)):
        for line, phrase, suggestion in findings(path):
            sys.stdout.write(f"{path.relative_to(ROOT)}:{line}: {phrase!r}: {suggestion}\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
