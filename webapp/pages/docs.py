"""Shows the Markdown documents in docs/ as help pages."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from jobs import program
from jobs.errors import NotFound
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
    title = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), file.stem)
    return title, SafeString(renderer.render(text))


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
