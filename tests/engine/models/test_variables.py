"""The plan's variable list, compared with built Keras models, and the layout checks."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.layout_rules import check_layout, shadowed_rules, shard_shape, suggest_layout
from jobs.spec.plan.training_memory import memory_per_device, optimizer_slots
from jobs.spec.plan.variables import layer_names, parameters, variables
from jobs.spec.sections.mesh import LayoutRule, MeshSpec
from jobs.spec.templates.layers import Variable
from tests.engine.helpers import spec_of

MODELS = [
    ("mlp", {}),
    ("mlp", {"units": 12, "layers": 3, "dropout": 0.2, "batch_norm": True}),
    ("cnn", {"filters": 4, "units": 6}),
    ("cnn", {"filters": 3, "layers": 5, "dropout": 0.1, "kernel": 2}),
    ("linear", {"l2": 0.1}),
]
MESH = MeshSpec(shape=(2, 2), axis_names=("data", "model"), simulate=4)


def image_profile(**changes: Any) -> Profile:
    body = {
        "rows": 9, "kind": "image", "task": "multiclass", "target": "y", "features": ("x",),
        "input_shape": (8, 8, 1), "outputs": 10, "columns": (), "preview": (),
    }  # fmt: skip
    return Profile.model_validate({**body, **changes})


def built(template: str, args: dict[str, Any], profile: Profile, **parts: Any) -> tuple[ExperimentSpec, Any]:
    import numpy as np

    from workers.engine.models.build import build
    from workers.engine.models.scaling import Scaling

    spec = spec_of("d", template, args=args, **parts)
    last = profile.input_shape[-1]
    scaling = Scaling(np.zeros(last), np.ones(last))
    return spec, build(spec, profile, scaling, name="x", seed=0)


@pytest.mark.parametrize(("template", "args"), MODELS)
@pytest.mark.parametrize("task", ["multiclass", "binary"])
def test_the_list_is_what_keras_builds(template: str, args: dict[str, Any], task: str) -> None:
    profile = image_profile(task=task)
    spec, model = built(template, args, profile)
    listed = {(v.path, v.shape, v.trainable) for v in variables(spec.model, profile)}
    trainable = {v.path for v in model.trainable_variables}
    seedless = [v for v in model.variables if not v.path.endswith("seed_generator_state")]
    assert listed == {(v.path, tuple(v.shape), v.path in trainable) for v in seedless}
    assert parameters(spec.model, profile) == sum(math.prod(v.shape) for v in model.trainable_variables)


@pytest.mark.parametrize(("template", "args"), MODELS)
@pytest.mark.parametrize("task", ["multiclass", "regression"])
def test_the_layers_have_the_names_that_keras_gives_them(
    template: str, args: dict[str, Any], task: str
) -> None:
    profile = image_profile(task=task, outputs=1 if task == "regression" else 10)
    spec, model = built(template, args, profile)
    assert layer_names(spec.model, profile) >= {layer.name for layer in model.layers} - {"input"}


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "nadam", "rmsprop", "sgd", "adagrad", "lion"])
def test_optimizer_slots_are_counted_as_keras_makes_them(optimizer: str) -> None:
    from workers.engine.models.optimizer import make_optimizer

    spec, model = built("mlp", {"units": 4}, image_profile(), fit={"optimizer": optimizer})
    built_optimizer = make_optimizer(spec.fit, 1)
    built_optimizer.build(model.trainable_variables)
    values = sum(math.prod(v.shape) for v in built_optimizer.variables if len(v.shape))
    assert values == optimizer_slots(spec.fit) * parameters(spec.model, image_profile())


def test_memory_is_divided_as_the_layout_says() -> None:
    profile = image_profile(outputs=4)
    layout = [{"match": ".*/kernel", "axes": [None, "model"]}, {"match": ".*/bias", "axes": ["model"]}]
    whole = memory_per_device(spec_of(args={"units": 8}), profile)
    mesh = {**MESH.model_dump(exclude={"layout"}), "layout": layout}
    half = memory_per_device(spec_of(args={"units": 8}, mesh=mesh), profile)
    assert (whole.weights, half.weights) == (4 * (64 * 8 + 8 + 8 * 4 + 4), 2 * (64 * 8 + 8 + 8 * 4 + 4))
    assert half.optimizer == 2 * half.gradients == 2 * half.weights
    assert half.activations == whole.activations // 2


def test_a_shard_is_plain_division() -> None:
    assert shard_shape((64, 64), (None, "model"), MESH) == (64, 32)
    with pytest.raises(ValueError, match=r"dimension 1 .* 'model' of 2"):
        shard_shape((64, 5), (None, "model"), MESH)


KERNEL = Variable("dense_1/kernel", (64, 10))
BIAS = Variable("dense_1/bias", (10,))


def mesh_of(*rules: tuple[str, Sequence[str | None]], shape: tuple[int, ...] = (2, 2)) -> MeshSpec:
    layout = tuple(LayoutRule(match=match, axes=axes) for match, axes in rules)
    return MeshSpec(shape=shape, axis_names=("data", "model"), layout=layout)


def problems_of(
    *rules: tuple[str, Sequence[str | None]], batch: int = 32, shape: tuple[int, ...] = (2, 2)
) -> dict[str, str]:
    mesh = mesh_of(*rules, shape=shape)
    return {p.pointer: p.message for p in check_layout(mesh, [KERNEL, BIAS], batch)}


def test_a_good_layout_has_no_problems() -> None:
    assert not problems_of((".*/kernel", (None, "model")), (".*/bias", ("model",)))


def test_a_rule_that_matches_nothing_is_named() -> None:
    assert "matches no variable" in problems_of(("dense", (None, "model")))["/mesh/layout/0/match"]


def test_of_two_rules_on_one_path_the_first_applies() -> None:
    rules = ("dense_1/kernel", (None, "model")), (".*/kernel", ("model", "data"))
    # The second one does not divide the kernel's ten columns.
    assert "applies" not in problems_of(*rules, shape=(4, 2)).values()
    assert not problems_of(*rules, shape=(4, 2))
    assert "dimension 1" in problems_of(*reversed(rules), shape=(4, 2))["/mesh/layout/0/axes"]


def test_a_rule_that_another_one_precedes_has_a_note() -> None:
    mesh = mesh_of((".*/kernel", (None, "model")), ("dense_1/.*", (None, "model")), (".*/bias", ("model",)))
    (note,) = shadowed_rules(mesh, [KERNEL])
    assert note.pointer == "/mesh/layout/1/match"
    assert note.message.startswith(
        "rule 1 (.*/kernel) and rule 2 (dense_1/.*) both match 'dense_1/kernel'; the first one applies, so"
    )
    assert "applies to no variable: move it up" in note.message
    # It applies to the bias, so it is of use.
    notes = [note.message for note in shadowed_rules(mesh, [KERNEL, BIAS])]
    assert [message.endswith("the first one applies") for message in notes] == [True, False]


def test_an_axis_that_a_rule_names_twice_is_rejected() -> None:
    messages = problems_of((".*/kernel", ("model", "model")))
    assert "names the axis 'model' twice" in messages["/mesh/layout/0/axes"]


def test_a_rule_of_lower_rank_is_rejected() -> None:
    assert "needs one axis per dimension" in problems_of((".*/kernel", ("model",)))["/mesh/layout/0/axes"]


def test_a_dimension_that_does_not_divide_is_rejected() -> None:
    messages = problems_of((".*/kernel", (None, "model")), shape=(2, 4))
    assert "'dense_1/kernel': dimension 1" in messages["/mesh/layout/0/axes"]


def test_a_batch_that_does_not_divide_is_rejected() -> None:
    assert "batch size 33" in problems_of(batch=33)["/fit/batch_size"]


def test_the_rule_of_thumb_shards_what_divides_and_has_no_problems() -> None:
    listed = [Variable("a/kernel", (3, 8)), Variable("a/bias", (8,)), Variable("output/kernel", (8, 5))]
    mesh = MESH.model_copy(update={"layout": suggest_layout(MESH, listed)})
    assert len(mesh.layout) == 2
    assert not check_layout(mesh, listed, 32)
