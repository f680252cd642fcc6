"""The form is described once; these tests hold the description against the spec."""

import json
from typing import Literal, get_origin

import pytest

from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.policies import POLICIES
from jobs.spec.sections.precision import UNSUPPORTED_POLICIES
from jobs.spec.space.searchable import SEARCHABLE_FIT_FIELDS
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo
from tests.datasets.making import DIABETES, DIGITS
from webapp.forms.experiments.experiment.rows import FIT_RANGES, OVERRIDES
from webapp.forms.experiments.experiment.running import PRECISION
from webapp.forms.experiments.experiment.schema import VARIANTS, spec_leaves
from webapp.forms.experiments.experiment.sections import EXEMPT, SECTIONS, covered_pointers
from webapp.forms.experiments.experiment.start import starting_spec, suitable_template


def test_every_field_of_the_spec_is_in_the_form_or_exempt_with_a_reason() -> None:
    assert set(spec_leaves()) - set(covered_pointers()) == set(EXEMPT)
    assert all(EXEMPT.values())


def test_the_form_has_no_field_that_the_spec_lacks() -> None:
    assert set(covered_pointers()) <= set(spec_leaves())


def test_no_field_appears_twice() -> None:
    assert len(covered_pointers()) == len(set(covered_pointers()))


def test_an_argument_is_offered_for_exactly_the_kinds_that_have_it() -> None:
    fields = [
        field for section in SECTIONS for group in section.groups for field in group.fields if field.only
    ]
    for field in fields:
        name = field.pointer.rsplit("/", 1)[-1]
        kinds = VARIANTS[field.of].kinds
        assert set(field.only) == {kind for kind, takes in kinds.items() if name in takes.model_fields}


@pytest.mark.parametrize("pointer", VARIANTS)
def test_an_argument_of_several_kinds_means_the_same_for_each(pointer: str) -> None:
    seen: dict[str, object] = {}
    for takes in VARIANTS[pointer].kinds.values():
        for name, field in takes.model_fields.items():
            # Each kind may offer its own values of a choice.
            meant = "a choice" if get_origin(field.annotation) is Literal else str(field.annotation)
            if name != "kind":
                assert meant == seen.setdefault(name, meant), name


def test_every_searchable_name_has_a_default_range() -> None:
    assert set(FIT_RANGES) == SEARCHABLE_FIT_FIELDS
    for info in TEMPLATES.values():
        assert set(info.ranges) == set(info.arguments.model_fields)


def test_the_advisor_lists_every_policy_and_rejects_unsupported_ones() -> None:
    options = set(spec_leaves()["/precision/policy"].options)
    assert set(POLICIES) == options
    assert {name for name, info in POLICIES.items() if info.refusal} == set(UNSUPPORTED_POLICIES)


def test_the_form_offers_no_policy_that_is_refused() -> None:
    fields = [*OVERRIDES, *(field for group in PRECISION.groups for field in group.fields)]
    offered = [field for field in fields if field.pointer.endswith("policy")]
    assert len(offered) == 2
    for field in offered:
        assert UNSUPPORTED_POLICIES.keys().isdisjoint(json.loads(option.value) for option in field.choices)


@pytest.mark.parametrize("profile", [DIGITS, DIABETES, None])
@pytest.mark.parametrize("template", ["", *TEMPLATES])
def test_a_new_form_contains_a_valid_spec(profile: dict[str, object] | None, template: str) -> None:
    known_profile = Profile.model_validate(profile) if profile else None
    ExperimentSpec.model_validate(starting_spec("digits", 1, known_profile, template))


@pytest.mark.parametrize("info", TEMPLATES.values(), ids=list(TEMPLATES))
def test_a_template_refers_only_to_its_own_arguments(info: TemplateInfo) -> None:
    arguments = set(info.arguments.model_fields)
    named = {*info.shaping, *info.searched, *info.initial_arguments, *info.traced}
    named |= {name for name in (info.width, info.head_penalty) if name}
    assert named <= arguments
    assert bool(info.builder) != bool(info.preparation), "it makes layers, or prepares the whole training"
    assert all(field.title for field in info.arguments.model_fields.values())
    assert not info.width or info.layers is not None, "widened models need the list of their variables"


def test_some_template_suits_all_data() -> None:
    assert [suitable_template(Profile.model_validate(profile)).name for profile in (DIGITS, DIABETES)] == [
        "mlp",
        "mlp",
    ]
    large = Profile.model_validate({**DIGITS, "input_shape": (28, 28, 1)})
    assert suitable_template(large).name == "cnn"


def test_a_template_for_texts_is_suggested_if_all_features_are_texts() -> None:
    def suggested(*types: str) -> str:
        columns = [{"name": f"c{i}", "dtype": "text", "type": kind} for i, kind in enumerate(types)]
        names = [column["name"] for column in columns]
        body = {**DIABETES, "columns": columns, "features": names, "has_pipeline": True}
        return suitable_template(Profile.model_validate(body)).name

    assert suggested("text", "text") == "text_bow"
    assert suggested("text", "number") == "mlp"
    assert suggested("number") == "mlp"
