"""Shows the Markdown documents in docs/ as help pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.safestring import SafeString
from django.utils.text import slugify
from markdown_it import MarkdownIt

from jobs import program
from jobs.errors import NotFound
from webapp.pages.matching import matches
from webapp.pages.shortcuts import Crumbs, Request, crumbs, page, render_page
from webapp.template_context import Context


class Group(NamedTuple):
    """A section in the list: documents in one folder whose names start with `prefix`."""

    title: str
    folder: str
    prefix: str = ""


GROUPS = (
    Group("User guide", "guide"),
    Group("For developers: tutorials", "", "tutorial-"),
    Group("Reference", ""),
    Group("Measurements", "benchmarks"),
    Group("Decision records", "decisions"),
)
"""In the order of the page. A document is listed in the first group that fits it."""

PARTS_LEFT_OUT = ("decisions/", "benchmarks/")
"""Documents of which a search finds the titles alone."""

IDS_OF_FRAME = ("site-search", "site-search-results", "nav", "content", "main", "toasts", "connection", "refusals", "confirm", "keys")
"""Ids that the page round a document uses."""

HEADING = re.compile(r"#{1,6} +(.+?) *#*")

RENAMED = {
    "decisions/0005-tests-on-all-cores": "decisions/0005-tests-in-two-tiers",
    "guide/8-isolation": "guide/12-isolation",
    "guide/9-fine-tuning": "guide/11-fine-tuning",
}
"""Earlier names of documents, whose addresses lead to the present ones."""


def docs_folder() -> Path:
    """Return the folder with the documents."""
    return program.resource_folder("docs")


def list_documents() -> dict[str, Path]:
    """Return the documents by name. A name from an address is looked up here and never used as a path."""
    files = {}
    for name in dict.fromkeys(group.folder for group in GROUPS):
        for file in sorted((docs_folder() / name).glob("*.md"), key=_by_number):
            files[f"{name}/{file.stem}" if name else file.stem] = file
    return files


def _by_number(file: Path) -> tuple[int, str]:
    """Sort numbered documents by their numbers, after those without one."""
    number, _, _ = file.stem.partition("-")
    return (int(number) if number.isdigit() else 0), file.stem


# The time of the last change is part of the key, so that a changed document is rendered again.
@lru_cache(maxsize=64)
def _render_file(file: Path, _modified: float) -> tuple[str, SafeString]:
    """Return a document's title and its HTML. HTML inside Markdown is shown as text."""
    text = file.read_text(encoding="utf-8")
    renderer = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    tokens = renderer.parse(text)
    headings = [(token, after.content) for token, after in pairwise(tokens) if token.type == "heading_open"]
    anchors = _anchors([title for _, title in headings])
    for (token, _), anchor in zip(headings, anchors, strict=True):
        token.attrSet("id", anchor)
    html = renderer.renderer.render(tokens, renderer.options, {})
    return next(iter(_headings(text)), Heading(file.stem, "")).title, SafeString(html)


def _anchors(titles: list[str]) -> list[str]:
    """Return an anchor for each heading of a document, as the links in the documents expect them."""
    seen = dict.fromkeys(IDS_OF_FRAME, 0)
    anchors = []
    for title in titles:
        anchor = slugify(title, allow_unicode=True)
        count = seen[anchor] = seen.get(anchor, -1) + 1
        anchors.append(f"{anchor}-{count}" if count else anchor)
    return anchors


class Heading(NamedTuple):
    """A heading of a document, and its anchor in the page; the title of the document comes first."""

    title: str
    anchor: str


def _headings(text: str) -> list[Heading]:
    """Return a document's headings. Lines in blocks of code are none."""
    titles = []
    in_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and (found := HEADING.fullmatch(line)):
            titles.append(found[1])
    return [
        Heading(title.replace("`", ""), anchor)
        for title, anchor in zip(titles, _anchors(titles), strict=True)
    ]


@lru_cache(maxsize=512)
def _headings_of_file(file: Path, _modified: float) -> list[Heading]:
    return _headings(file.read_text(encoding="utf-8"))


class Section(NamedTuple):
    """A document, or a part of one, that a search found; `hint` names where it is."""

    title: str
    hint: str
    url: str


def find_sections(text: str) -> Iterator[Section]:
    """Yield the documents whose titles match `text`, then the parts of them whose headings do."""
    parts = []
    for name, file in list_documents().items():
        title, *below = _headings_of_file(file, file.stat().st_mtime)
        address = reverse("help_page", args=[name])
        if matches(text, title.title):
            yield Section(title.title, "", address)
        # The headings of records repeat.
        if not name.startswith(PARTS_LEFT_OUT):
            parts += [Section(h.title, title.title, f"{address}#{h.anchor}") for h in below]
    yield from (part for part in parts if matches(text, part.title))


def _title_and_html(file: Path) -> tuple[str, SafeString]:
    return _render_file(file, file.stat().st_mtime)


@dataclass(frozen=True)
class DocumentsPage(Context):
    """The documents, grouped by subject."""

    groups: list[tuple[str, list[tuple[str, str]]]]


@page
def docs(request: Request) -> HttpResponse:
    """List the documents by group."""
    left = list_documents()
    groups = []
    for group in GROUPS:
        start = f"{group.folder}/{group.prefix}".lstrip("/")
        names = [name for name in left if name.startswith(start) and name.count("/") == bool(group.folder)]
        groups.append((group.title, [(name, _title_and_html(left.pop(name))[0]) for name in names]))
    return render_page(request, "docs/list.html", DocumentsPage(groups=groups))


@dataclass(frozen=True)
class DocumentPage(Context):
    """One document."""

    title: str
    body: SafeString
    crumbs: Crumbs


@page
def document(request: Request, name: str) -> HttpResponse:
    """Show one document."""
    name = name.removesuffix(".md")
    if name in RENAMED:
        return redirect("help_page", RENAMED[name], permanent=True)
    file = list_documents().get(name)
    if file is None:
        raise NotFound("There is no such document.")
    title, body = _title_and_html(file)
    context = DocumentPage(title=title, body=body, crumbs=crumbs(("Help", reverse("help")), title))
    return render_page(request, "docs/one.html", context)


urls = [path("docs", docs, name="help"), path("docs/<path:name>", document, name="help_page")]
