"""Every field in the form of scripts changes the spec, which then shows the same entries again."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.queries.data.datasets import READY
from webapp.forms.experiments.script.arguments import ArgumentForm, ArgumentFormSet
from webapp.forms.experiments.script.script import ScriptForm
from webapp.forms.experiments.script.spec import initial_values, spec_from

OURS, OTHERS = "a" * 64, "b" * 64
RATE = {"name": "rate", "kind": "float", "min": 0.1, "max": 1.0}
FILLED: dict[str, Any] = {
    "name": "train", "code": OURS, "entry": "train.py", "steps": 100, "seed": 0, "metric": "accuracy",
    "direction": "max", "algorithm": "random", "max_trials": 12, "executions": 1, "pool": "default",
    "slots": 1, "devices": "simulated", "axes": "data=8",
}  # fmt: skip
OTHER_VALUES: dict[str, Any] = {
    "code": OTHERS, "entry": "-m package.train", "variables": "MODE=quick", "dataset": "digits:2", "steps": 5,
    "seed": 7, "metric": "loss", "direction": "min", "algorithm": "grid", "max_trials": 3, "executions": 2,
    "parallel": 4, "pruner": "median", "register": "net", "pool": "large", "labels": "gpu=h200", "slots": 2,
    "gpu_model": "H200", "gpu_memory": 100.0, "gpus": 2, "devices": "gpu", "axes": "data=2, model=4",
    "minutes": 5.0,
}  # fmt: skip
BESIDE_THE_SPEC = {"name", "seen", "tags", "notes"}
"""Tests with a browser show their effects; see `tests/web/form_effects.py`."""

ROW: dict[str, Any] = {"name": "rate", "use": "set", "text": "3"}
LISTED: dict[str, Any] = {"name": "rate", "use": "values", "values": "1, 2"}
RANGE: dict[str, Any] = {"name": "rate", "use": "range", "low": "1", "high": "9"}
OTHER_ENTRIES: dict[str, tuple[dict[str, Any], Any]] = {
    "name": (ROW, "speed"),
    "use": (ROW, "omit"),
    "text": (ROW, "4"),
    "type": (ROW, "str"),
    "several": ({**ROW, "text": "3 4", "type": "int"}, "on"),
    "values": (LISTED, "1, 3"),
    "low": (RANGE, "2"),
    "high": (RANGE, "8"),
    "step": (RANGE, "2"),
    "scale": (RANGE, "log"),
}
"""By field, a row that has a use for it, and another value."""


def form_of(**arguments: Any) -> ScriptForm:
    """Make the form with two versions of code, and a data set of two versions."""
    versions = [SimpleNamespace(number=number, state=READY) for number in (1, 2)]
    dataset = SimpleNamespace(slug="digits", versions=SimpleNamespace(all=lambda: versions))
    codes = [SimpleNamespace(digest=digest) for digest in (OURS, OTHERS)]
    return ScriptForm(cast("Any", codes), cast("Any", [dataset]), **arguments)


def spec_of(entries: dict[str, Any], space: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the spec that a new form with these entries describes: a search unless `space` is empty."""
    form = form_of(data={name: value for name, value in entries.items() if value is not None})
    assert form.is_valid(), form.errors
    return spec_from({}, form.cleaned_data, {}, [RATE] if space is None else space)


def shown(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of the form that shows a spec."""
    form = form_of(initial={"name": "train", **dict(initial_values(spec))})
    return {field.name: field.value() for field in form}


@pytest.mark.parametrize("field", sorted(ScriptForm.base_fields.keys() - BESIDE_THE_SPEC))
def test_every_field_changes_the_spec_and_is_shown_again(field: str) -> None:
    assert field in OTHER_VALUES, "a new field needs another value here"
    before, changed = spec_of(FILLED), spec_of({**FILLED, field: OTHER_VALUES[field]})
    assert before != changed, f"{field} has no effect"
    assert shown(changed)[field] == OTHER_VALUES[field]
    assert spec_of(shown(changed)) == changed


def test_the_minutes_end_a_single_run_or_the_whole_search() -> None:
    limited = {**FILLED, "minutes": 5.0}
    single, search = spec_of(limited, space=[]), spec_of(limited)
    assert (single["resources"]["max_minutes"], "search" in single) == (5.0, False)
    assert (search["resources"]["max_minutes"], search["search"]["max_minutes"]) == (None, 5.0)
    assert shown(single)["minutes"] == shown(search)["minutes"] == 5.0


def test_the_limit_of_a_single_run_is_not_kept_when_an_argument_is_searched() -> None:
    form = form_of(data={**FILLED, "minutes": 5.0})
    assert form.is_valid()
    run = spec_from({}, form.cleaned_data, {}, [])
    search = spec_from(run, form.cleaned_data, {}, [RATE])
    assert (search["resources"]["max_minutes"], search["search"]["max_minutes"]) == (None, 5.0)


def of_row(entries: dict[str, Any]) -> Any:
    """Return the arguments and the search space of a row."""
    prefix = ArgumentFormSet.get_default_prefix()
    data = {f"{prefix}-{name}": value for name, value in {"TOTAL_FORMS": 1, "INITIAL_FORMS": 0}.items()}
    rows = ArgumentFormSet(data=data | {f"{prefix}-0-{name}": value for name, value in entries.items()})
    assert rows.is_valid(), rows.errors
    return rows.arguments(), rows.space()


@pytest.mark.parametrize("field", ArgumentForm.base_fields)
def test_every_field_of_an_argument_changes_its_value_or_its_search(field: str) -> None:
    assert field in OTHER_ENTRIES, "a new field needs another value here"
    row, value = OTHER_ENTRIES[field]
    assert of_row(row) != of_row({**row, field: value}), f"{field} has no effect"
