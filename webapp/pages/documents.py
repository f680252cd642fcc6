"""Reads the Markdown documents in docs/: their names, headings, text and HTML."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.text import slugify
from markdown_it import MarkdownIt

from jobs import program
from webapp.pages.matching import begins_a_word, matches, words_of


class Group(NamedTuple):
    """A section in a list of documents: those whose names fit one of the patterns, in this order."""

    title: str
    patterns: tuple[str, ...]


FOR_USERS = (
    Group("First steps", ("guide/[1-5]-*",)),
    Group(
        "Experiments and models",
        (
            *("guide/9-*", "guide/10-*", "guide/11-*", "guide/22-*", "guide/23-*", "guide/24-*"),
            *("searches", "search-spaces", "keras-tuner-scripts", "experiment-spec"),
        ),
    ),
    Group("Sharing machines", ("guide/6-*", "guide/7-*", "guide/21-*")),
    Group(
        "Running an installation", ("guide/8-*", "guide/1[2-9]-*", "guide/20-*", "sandbox", "configuration")
    ),
    Group("REST", ("walkthrough-curl", "live")),
    Group("More guides", ("guide/*",)),
)
"""The help for users, in the order of the page. A document is in the first group that fits it."""

FOR_DEVELOPERS = (
    Group("Tutorials", ("tutorial-*",)),
    Group("The tree", ("map",)),
    Group("Measurements", ("benchmarks", "benchmarks/*")),
    Group("Decision records", ("decisions/*",)),
    Group("More documents", ("*",)),
)
"""Documents about the program itself, on a page of their own."""

FOLDERS = ("guide", "", "benchmarks", "decisions")

IDS_OF_FRAME = (
    *("site-search", "site-search-results", "nav", "content", "main", "toasts", "connection", "refusals"),
    *("confirm", "keys"),
)
"""Ids that the page round a document uses."""

HEADING = re.compile(r"#{1,6} +(.+?) *#*")
MARKS = re.compile(r"\]\([^)]*\)|[`*|\[\]]|^[#>\s-]+", re.MULTILINE)
"""Markup that an excerpt leaves out."""

EXCERPT = 160
"""The most characters of an excerpt."""


def docs_folder() -> Path:
    """Return the folder with the documents."""
    return program.resource_folder("docs")


def list_documents() -> dict[str, Path]:
    """Return the documents by name. A name from an address is looked up here and never used as a path."""
    files = {}
    for name in FOLDERS:
        for file in sorted((docs_folder() / name).glob("*.md"), key=_by_number):
            files[f"{name}/{file.stem}" if name else file.stem] = file
    return files


def _by_number(file: Path) -> tuple[int, str]:
    """Sort numbered documents by their numbers, after those without one."""
    number, _, _ = file.stem.partition("-")
    return (int(number) if number.isdigit() else 0), file.stem


def grouped_names(groups: Iterable[Group]) -> list[tuple[str, list[str]]]:
    """Return the title of each group with the names of its documents, without empty groups."""
    left = list(list_documents())
    if groups is FOR_DEVELOPERS:
        # The last group of developers takes all that no group of users has.
        left = [name for name in left if not is_for_users(name)]
    listed = []
    for group in groups:
        names = [name for pattern in group.patterns for name in left if fnmatchcase(name, pattern)]
        names = list(dict.fromkeys(names))
        left = [name for name in left if name not in names]
        listed.append((group.title, names))
    return [(title, names) for title, names in listed if names]


def is_for_users(name: str) -> bool:
    """Return whether a document belongs to the help for users."""
    return any(fnmatchcase(name, pattern) for group in FOR_USERS for pattern in group.patterns)


# The time of the last change is part of the keys, so that a changed document is read again.
@lru_cache(maxsize=64)
def _render_file(file: Path, _modified: float) -> SafeString:
    text = file.read_text(encoding="utf-8")
    renderer = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    tokens = renderer.parse(text)
    headings = [(token, after.content) for token, after in pairwise(tokens) if token.type == "heading_open"]
    anchors = _anchors([title for _, title in headings])
    for (token, _), anchor in zip(headings, anchors, strict=True):
        token.attrSet("id", anchor)
    return SafeString(renderer.renderer.render(tokens, renderer.options, {}))


def html_of(file: Path) -> SafeString:
    """Return a document's HTML. HTML inside Markdown is shown as text."""
    return _render_file(file, file.stat().st_mtime)


def title_of(file: Path) -> str:
    """Return a document's first heading."""
    return parts_of(file)[0].title


def _anchors(titles: list[str]) -> list[str]:
    """Return an anchor for each heading of a document, as the links in the documents expect them."""
    seen = dict.fromkeys(IDS_OF_FRAME, 0)
    anchors = []
    for title in titles:
        anchor = slugify(title, allow_unicode=True)
        count = seen[anchor] = seen.get(anchor, -1) + 1
        anchors.append(f"{anchor}-{count}" if count else anchor)
    return anchors


class Part(NamedTuple):
    """A heading of a document with its anchor in the page and the text below it; the title is the first."""

    title: str
    anchor: str
    text: str


@lru_cache(maxsize=512)
def _parts_of_file(file: Path, _modified: float) -> list[Part]:
    titles: list[str] = []
    texts: list[list[str]] = []
    in_code = False
    for line in file.read_text(encoding="utf-8").splitlines():
        in_code ^= line.lstrip().startswith("```")
        # Lines in blocks of code are no headings.
        if not in_code and (found := HEADING.fullmatch(line)):
            titles.append(found[1])
            texts.append([])
        elif texts:
            texts[-1].append(line)
    if not titles:
        return [Part(file.stem, "", "")]
    return [
        Part(title.replace("`", ""), anchor, "\n".join(lines))
        for title, anchor, lines in zip(titles, _anchors(titles), texts, strict=True)
    ]


def parts_of(file: Path) -> list[Part]:
    """Return the parts of a document, one for each heading."""
    return _parts_of_file(file, file.stat().st_mtime)


class Section(NamedTuple):
    """A document, or a part of one, that a search found.

    Attributes:
        title: its heading.
        hint: the title of its document; empty for a document itself.
        url: its address.
        excerpt: a line of its text with a word of the query; empty if only its heading was looked at.
    """

    title: str
    hint: str
    url: str
    excerpt: str = ""


def find_sections(text: str, *, for_users: bool) -> Iterator[Section]:
    """Yield the documents whose titles match `text`, then the parts of them whose headings do.

    Args:
        text: the query.
        for_users: whether the help for users is searched, or the documents for developers.
    """
    parts = []
    for name, (title, *below) in _documents(for_users=for_users):
        address = reverse("help_page", args=[name])
        if matches(text, title.title):
            yield Section(title.title, "", address)
        # The headings of decision records repeat.
        if not name.startswith("decisions/"):
            parts += [Section(part.title, title.title, f"{address}#{part.anchor}") for part in below]
    yield from (part for part in parts if matches(text, part.title))


def search_documents(text: str, *, for_users: bool) -> list[Section]:
    """Return the parts of documents that have all words of `text`: in the heading first, then in the text."""
    words = words_of(text)
    if not words:
        return []
    by_heading: list[Section] = []
    by_text: list[Section] = []
    for name, parts in _documents(for_users=for_users):
        document, address = parts[0].title, reverse("help_page", args=[name])
        for position, part in enumerate(parts):
            hint = document if position else ""
            content = f"{document}\n{part.title}\n{part.text}".casefold()
            if not all(begins_a_word(word, content) for word in words):
                continue
            url = f"{address}#{part.anchor}" if position else address
            section = Section(part.title, hint, url, _excerpt(part.text, words))
            (by_heading if matches(text, part.title) else by_text).append(section)
    return [*by_heading, *by_text]


def _documents(*, for_users: bool) -> Iterator[tuple[str, list[Part]]]:
    files = list_documents()
    groups = grouped_names(FOR_USERS if for_users else FOR_DEVELOPERS)
    for name in chain.from_iterable(names for _, names in groups):
        yield name, parts_of(files[name])


def _excerpt(text: str, words: list[str]) -> str:
    """Return text from the line with most of the words on, without markup."""
    lines = text.splitlines()
    at = max(
        range(len(lines)),
        key=lambda index: sum(begins_a_word(word, lines[index].casefold()) for word in words),
        default=0,
    )
    plain = " ".join(MARKS.sub("", "\n".join(lines[at : at + 4])).split())
    return plain if len(plain) <= EXCERPT else f"{plain[:EXCERPT].rsplit(' ', 1)[0]} …"
