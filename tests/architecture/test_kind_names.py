"""A job kind is named in at most three files outside its folder: its engine function, a query, the table.

All other modules, templates and scripts read the facts of kinds.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from jobs.kinds import KINDS
from tests.architecture.sources import ROOT, modules

MOST_FILES = 3
LOOKUPS = frozenset({"actions_for", "payload_of", "steps_from"})
"""Functions whose argument is the name of a kind."""
QUERIES = frozenset({"filter", "exclude", "get", "create", "get_or_create", "update_or_create"})
_ANY_KIND = "|".join(sorted(KINDS))
IN_TEXTS = re.compile(rf"""\.kind\s*[!=]==?\s*["']({_ANY_KIND})["']|[?&]kind=({_ANY_KIND})\b""")
"""A comparison with a kind or an address with one, in templates and scripts."""


def kinds_named_in(tree: ast.Module) -> set[str]:
    """Return the kinds that a module imports from their folders, or names as job kinds."""
    return {name for node in ast.walk(tree) for name in _names_in(node) if name in KINDS}


def _names_in(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ImportFrom(module=str(module)):
            yield from _folders_in([module, *(f"{module}.{alias.name}" for alias in node.names)])
        case ast.Import(names=names):
            yield from _folders_in([alias.name for alias in names])
        case ast.AnnAssign(target=ast.Name(id="kind")) if KINDS.keys() >= set(_texts_in(node)):
            yield from _texts_in(node)
        case ast.Compare(left=left, comparators=others) if any(map(_is_kind, (left, *others))):
            yield from _texts_in(node)
        case ast.Call(func=ast.Name(id=function)) if function in LOOKUPS:
            yield from _texts_in(node)
        case ast.Call(func=ast.Attribute(attr=method), keywords=keywords) if method in QUERIES:
            for keyword in keywords:
                if re.fullmatch(r"(?:job__)?kind(?:__in)?", keyword.arg or ""):
                    yield from _texts_in(keyword)
        case ast.Subscript(value=ast.Name(id="KINDS")):
            yield from _texts_in(node.slice)
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            yield from _all_kinds(items)
        case ast.Dict(keys=keys):
            yield from _all_kinds([key for key in keys if key is not None])


def _folders_in(paths: list[str]) -> Iterator[str]:
    for path in paths:
        if (folder := re.match(r"jobs\.kinds\.(\w+)", path)) is not None:
            yield folder[1]


def _is_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).endswith("kind")


def _texts_in(node: ast.AST) -> list[str]:
    constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def _all_kinds(items: list[ast.expr]) -> list[str]:
    """Return the texts in a collection that holds only kind names, and at least two."""
    texts = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return texts if len(texts) == len(items) > 1 and KINDS.keys() >= set(texts) else []


@cache
def files_by_kind() -> dict[str, set[str]]:
    """Return the files outside of a kind's folder that name it, by kind."""
    files: dict[str, set[str]] = defaultdict(set)
    for module, tree in modules().items():
        for kind in kinds_named_in(tree):
            if not module.startswith(f"jobs.kinds.{kind}"):
                files[kind].add(module)
    for path in [*(ROOT / "templates").rglob("*.html"), *(ROOT / "webapp/static/js").rglob("*.js")]:
        for hit in IN_TEXTS.finditer(path.read_text("utf-8")):
            files[hit[1] or hit[2]].add(str(path.relative_to(ROOT)))
    return files


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("from jobs.kinds.search.payload import SearchPayload", {"search"}),
        ("from jobs.kinds import gate", {"gate"}),
        ("kind: Literal['train'] = 'train'", {"train"}),
        ("if job.kind in ('train', 'quantize'): pass", {"train", "quantize"}),
        ("Job.objects.filter(kind='profile')", {"profile"}),
        ("actions_for('register').children(root, spec)", {"register"}),
        ("KINDS['install'].task", {"install"}),
        ("STEPS = ('search', 'train')", {"search", "train"}),
        ("ENGINES = {'search': trials, 'train': train}", {"search", "train"}),
        ("kind: Literal['member', 'ensemble']", set()),
        ("PARTS = ('train', 'validation', 'test')", set()),
        ("spec['search']; F(kind='search'); from_jobs = ['ensemble']", set()),
    ],
)
def test_the_check_finds_kinds_that_are_named(source: str, kinds: set[str]) -> None:
    assert kinds_named_in(ast.parse(source)) == kinds


def test_the_check_finds_kinds_in_templates_and_addresses() -> None:
    assert IN_TEXTS.search("{% if job.kind == 'search' %}") and IN_TEXTS.search("/jobs?state=done&kind=gate")
    assert not IN_TEXTS.search("{% if entry.kind == 'image' %}") and not IN_TEXTS.search("?kind=searches")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_named_in_at_most_three_files_outside_its_folder(kind: str) -> None:
    files = sorted(files_by_kind()[kind])
    assert "jobs.kinds" in files, "the table names every kind"
    assert len(files) <= MOST_FILES, f"read a fact of the kind instead: {', '.join(files)}"
