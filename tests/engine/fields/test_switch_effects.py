"""Sections and steps that a spec may lack, and the arguments of own code and scripts, change something."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from jobs.spec.experiment import ExperimentSpec
from tests.engine.fields import field_effects as probes
from tests.engine.fields import field_effects_in_rows as rows
from tests.engine.fields import field_effects_of_own_models as own
from tests.engine.fields.test_field_effects import (
    ENSEMBLE,
    MESH,
    SCRIPT,
    SEARCH,
    Effect,
    files,  # noqa: F401  a fixture
    spec_with,
)

pytestmark = pytest.mark.django_db

CLASS = {"/model": {"kind": "code", "digest": own.DIGEST, "entry": "Named.build"}}
EFFECTS: dict[str, Effect] = {
    "/data/window": Effect(probes.data, {"rows": 2}, {"/data/split/time": "a"}),
    "/fit/schedule": Effect(probes.optimizer, {"kind": "cosine"}),
    "/fit/early_stopping": Effect(probes.epochs, {}),
    "/fit/ema": Effect(probes.optimizer, {}),
    "/fit/augmentation": Effect(probes.layers, {"flip": "both"}, {"/model/template": "cnn"}),
    "/search": Effect(rows.steps, SEARCH["/search"]),
    "/search/pruner": Effect(probes.verdicts, {"kind": "median"}, SEARCH),
    "/mesh": Effect(probes.runner, MESH["/mesh"]),
    "/after/retrain": Effect(rows.steps, {}, SEARCH),
    "/after/ensemble": Effect(rows.steps, {}, ENSEMBLE),
    "/after/quantize": Effect(rows.steps, {}, SEARCH),
    "/after/register": Effect(rows.versions, {"model": "first"}),
    "/resources/gpu": Effect(probes.given_gpus, {}, {"/resources/slots": 2}),
}
"""By the pointer of a section that may be absent."""
ARGUMENTS: dict[str, Effect] = {
    "code": Effect(own.constructor, {"width": 3}, CLASS),
    "script": Effect(own.command, {"epochs": 3}, SCRIPT),
}
"""By the kind of the model: `args` with names that only the code knows."""
OF_KINDS = {
    "/data": "only scripts need none; the tests of their data show the files that they get",
    "/search/options": "only a place for the options, which have effects of their own",
}


def members(annotation: Any) -> Iterator[Any]:
    """Yield the types of a field."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        parts = get_args(annotation)
        for part in parts[:1] if get_origin(annotation) is Annotated else parts:
            yield from members(part)
    else:
        yield annotation


def switches(model: type[BaseModel] = ExperimentSpec, above: str = "") -> Iterator[str]:
    """Yield the pointer of each object that a spec may lack."""
    for name, field in model.model_fields.items():
        pointer = f"{above}/{field.alias or name}"
        objects = [
            kind
            for kind in members(field.annotation)
            if isinstance(kind, type) and issubclass(kind, BaseModel)
        ]
        if objects and field.default is None:
            yield pointer
        for kind in objects:
            yield from switches(kind, pointer)


SWITCHES = sorted(set(switches()) - OF_KINDS.keys())


@pytest.mark.parametrize("pointer", SWITCHES)
def test_a_section_that_may_be_absent_changes_something(pointer: str, files: probes.Files) -> None:  # noqa: F811
    assert pointer in EFFECTS, "a new section needs a probe that shows the change"
    effect = EFFECTS[pointer]
    before, after = (spec_with(pointer, "", effect, value) for value in (None, effect.value))
    assert effect.probe(before, files) != effect.probe(after, files), f"{pointer} has no effect"


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_arguments_of_code_and_scripts_arrive(kind: str, files: probes.Files) -> None:  # noqa: F811
    effect = ARGUMENTS[kind]
    empty: dict[str, Any] = {}
    before, after = (spec_with("/model/args", kind, effect, value) for value in (empty, effect.value))
    assert effect.probe(before, files) != effect.probe(after, files)


def test_no_effect_is_listed_for_a_section_that_does_not_exist() -> None:
    assert set(EFFECTS) | set(OF_KINDS) == set(switches())
