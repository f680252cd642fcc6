"""Every field of every form changes a stored row, or has a test of its own."""

import ast
import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.db import transaction

import webapp.forms
from tests.experiments.test_script_form_fields import OTHER_ENTRIES, OTHER_VALUES
from tests.people import People, browser_of
from tests.web.effects_elsewhere import SHOWN_BY
from tests.web.form_effects import PAGES, Entries, Page, Rows, make_rows
from tests.web.request_effects import REQUESTS
from webapp.accounts import forms as account_forms
from webapp.api.experiments.mesh_estimates import MeshEstimateIn
from webapp.api.experiments.precision import DryRunIn, PolicyFilter
from webapp.api.people.people import UserChange
from webapp.api.people.quotas import QuotasChange
from webapp.api.registry.smaller_versions import CastIn, QuantizeIn
from webapp.api.runs.jobs import JobChange
from webapp.api.runs.reservations import ReservationFilter, ReservationIn
from webapp.api.runs.workers import PoolChange
from webapp.forms.experiments.mesh_design.entries import MeshEntries
from webapp.forms.experiments.mesh_design.view_entries import ViewEntries

pytestmark = pytest.mark.django_db

TESTS = Path(__file__).parents[1]
IN_FILES_OF_THEIR_OWN = {"ScriptForm": OTHER_VALUES, "ArgumentForm": OTHER_ENTRIES}
BODIES = (
    MeshEstimateIn, DryRunIn, PolicyFilter, ReservationIn, ReservationFilter, PoolChange, UserChange,
    QuotasChange, JobChange, CastIn, QuantizeIn,
)  # fmt: skip
"""Bodies and queries of requests about devices, limits and precision."""
COMPARED = {"seen", "revision"}
"""Fields that name the state that a person has seen; the form is refused if others have changed it since."""
TRIED = PAGES | REQUESTS


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def all_fields() -> set[tuple[str, str]]:
    """Return each field of a form, with the name of the form."""
    for module in pkgutil.walk_packages(webapp.forms.__path__, "webapp.forms."):
        importlib.import_module(module.name)
    kinds = [
        kind
        for kind in subclasses(forms.BaseForm)
        if kind.__module__.startswith(("webapp.forms.", account_forms.__name__))
    ]
    found = {(kind.__name__, name) for kind in kinds for name in kind.base_fields}
    found |= {
        (kind.__name__, field.name)
        for kind in (MeshEntries, ViewEntries)
        for field in dataclasses.fields(kind)
    }
    return found | {(body.__name__, name) for body in BODIES for name in body.model_fields}


def known_fields() -> set[tuple[str, str]]:
    changed = {(form, name) for form, page in TRIED.items() for name in page.changes}
    named = {(form, name) for form, tests in SHOWN_BY.items() for name in tests}
    return (
        changed | named | {(form, name) for form, values in IN_FILES_OF_THEIR_OWN.items() for name in values}
    )


def test_every_field_of_every_form_has_a_test_of_its_effect() -> None:
    assert known_fields() == all_fields() | {("PreemptionForm", "on")}


@pytest.mark.parametrize("named", sorted({test for tests in SHOWN_BY.values() for test in tests.values()}))
def test_a_named_test_exists(named: str) -> None:
    file, _, name = named.partition("::")
    functions = (
        node for node in ast.walk(ast.parse((TESTS / file).read_text())) if isinstance(node, ast.FunctionDef)
    )
    assert name in {function.name for function in functions}


def outcome(page: Page, rows: Rows, changes: Entries) -> Any:
    """Send a form, and return the answer's status and the stored rows; then undo it."""
    entries = page.entries if isinstance(page.entries, dict) else page.entries(rows)
    sent = {name: value for name, value in {**entries, **changes}.items() if value is not None}
    with transaction.atomic():
        send = getattr(browser_of(getattr(rows.people, page.who)), page.method or "post")
        as_json = {"content_type": "application/json", "headers": {"If-Match": "*"}} if page.method else {}
        answer = send(page.path.format(**rows._asdict()), sent, **as_json)
        stored = page.look()
        transaction.set_rollback(True)
    return answer.status_code, stored


@pytest.mark.parametrize("form", TRIED)
def test_each_field_of_a_form_changes_what_is_stored(form: str, people: People) -> None:
    page, rows = TRIED[form], make_rows(people)
    before = outcome(page, rows, {})
    assert before[0] < 400, "the form is accepted"
    assert outcome(page, rows, {}) == before, "the rows depend on the entries alone"
    after = {name: outcome(page, rows, changes) for name, changes in page.changes.items()}
    refused = {name for name, (status, _) in after.items() if status >= 400}
    assert refused <= COMPARED, "a field has its effect in a row"
    without = [name for name, found in after.items() if found == before]
    assert not without, f"{', '.join(without)} of {form} without effect"
