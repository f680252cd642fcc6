"""A kind of job is one folder: other packages neither compare kinds nor read payloads by key."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.module_loading import import_string

from jobs.kinds import KINDS, PIPELINE, public_names, steps_from
from jobs.kinds.base import Facts

ROOT = Path(__file__).resolve().parents[2]
NAMES = frozenset({*KINDS, *public_names()})
BODIES = frozenset({"payload", "payload_json", "results", "results_json"})
PARTS = ("payload.py", "facts.py", "actions.py")

EXEMPT = ("jobs/kinds/", "jobs/migrations/")
QUERIES = frozenset({"filter", "exclude", "get", "create", "get_or_create", "update_or_create"})
COMPARED = rf"""\.kind\s*[!=]==?\s*["'](?:{"|".join(sorted(NAMES))})["']"""
IN_TEMPLATES = re.compile(rf"{COMPARED}|\b(?:payload|payload_json|results_json)\.\w")
"""A comparison of a kind with a name, or a part of a payload."""


def sources() -> Iterator[Path]:
    for folder in ("jobs", "transport", "webapp", "workers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not str(path.relative_to(ROOT)).startswith(EXEMPT):
                yield path


def found_in(source: str) -> list[str]:
    """Return a module's comparisons of kinds by name, and its reads of payloads and results by key."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if _is_forbidden(node)]


def _is_forbidden(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, comparators=others):
            return any(map(_is_kind, (left, *others))) and any(map(_names_a_kind, (left, *others)))
        case ast.Subscript(value=ast.Attribute(attr=attribute)):
            return attribute in BODIES
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attribute), attr="get")):
            return attribute in BODIES
        case ast.Call(func=ast.Attribute(attr=method), keywords=named) if method in QUERIES:
            return any(map(_asks_by_name, named))
        case ast.Constant(value=str(text)):
            return _looks_up_a_payload(text) and text.isidentifier()
    return False


def _is_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "kind"


def _names_a_kind(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return text in NAMES
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return any(map(_names_a_kind, items))
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            return "Kind" in owner or (owner.isupper() and attribute == "name")
    return False


def _asks_by_name(keyword: ast.keyword) -> bool:
    name = keyword.arg or ""
    is_kind = re.fullmatch(r"(?:job__)?kind(?:__in)?", name) is not None
    return _looks_up_a_payload(name) or (is_kind and _names_a_kind(keyword.value))


def _looks_up_a_payload(name: str) -> bool:
    return bool(re.search(r"(?:^|__)(?:payload|payload_json|results_json)__", name))


def test_the_check_finds_comparisons_and_key_lookups() -> None:
    for source in (
        'job.kind == "search"',
        'if job.kind in ("train", "quantize"): pass',
        "job.kind != SEARCH.name",
        "row.kind is JobKind.GATE",
        'job.payload["values"]',
        'job.payload_json.get("values")',
        'job.results_json["metrics"]',
        'Job.objects.filter(kind="profile")',
        "rows.filter(payload_json__version=3)",
        'rows.values_list("job__payload_json__version")',
    ):
        assert found_in(source), source
    assert not found_in('parameter.kind == "int"; job.payload.task_done; rows.filter(kind=kind)')
    assert IN_TEMPLATES.search("{% if job.kind == 'search' %}") and IN_TEMPLATES.search(
        "{{ job.payload.values }}"
    )
    assert not IN_TEMPLATES.search("{% if profile.kind == 'image' %}{{ shown.results.best_trial }}")


def test_no_module_compares_with_a_kind_or_reads_a_payload_by_key() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sources()}
    assert not {name: hits for name, text in texts.items() if (hits := found_in(text))}


def test_no_template_or_script_does_either() -> None:
    files = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "webapp/static/js").rglob("*.js")]
    hits = {path.name: hit.group() for path in files if (hit := IN_TEMPLATES.search(path.read_text("utf-8")))}
    assert not hits


@pytest.mark.parametrize("facts", KINDS.values(), ids=lambda facts: facts.name)
def test_a_kind_is_one_folder_of_three_files(facts: Facts) -> None:
    folder = ROOT / "jobs/kinds" / facts.name
    assert all((folder / part).is_file() for part in PARTS)
    assert (facts.task is None) == (facts.engine == ""), "a task needs an engine function"


def test_the_pipeline_and_the_table_agree() -> None:
    assert set(PIPELINE) <= KINDS.keys()
    assert {kind: steps_from(kind)[0] for kind, facts in KINDS.items() if facts.has_steps} == {
        "search": "search",
        "train": "train",
        "chosen_ensemble": "train",
    }


def test_each_kind_has_a_payload_model_of_its_own() -> None:
    # `submit.queue` finds the kind of a job by the model of its payload.
    assert len({facts.payload for facts in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize("facts", [row for row in KINDS.values() if row.details], ids=lambda row: row.name)
def test_the_details_of_a_kind_have_a_query_and_a_template(facts: Facts) -> None:
    assert callable(import_string(facts.details))
    assert (ROOT / "templates" / facts.details_template).is_file()
