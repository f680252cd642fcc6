"""The plans of one click, as functions of mesh and variables."""

from collections.abc import Sequence

import pytest

from jobs.spec.plan.mesh.layout_plans import (
    PLANS,
    alternating,
    data_parallel,
    fully_sharded,
    last_dimension,
    resize,
    with_model_axis,
)
from jobs.spec.plan.mesh.memory import memory_on_device
from jobs.spec.plan.mesh.placement import Weight, place_all
from jobs.spec.sections.mesh import MeshSpec
from tests.experiments.mesh.models import MESH, batch_norm, dense, mlp, norm, transformer

LINE = MeshSpec(shape=(8,), axis_names=("data",), simulate=8)


def axes_of(mesh: MeshSpec, weights: Sequence[Weight]) -> dict[str, tuple[str | None, ...]]:
    return {p.weight.path: p.axes for p in place_all(weights, mesh) if p.is_divided}


def test_data_parallel_has_one_axis_and_no_rules() -> None:
    design = data_parallel(MESH, mlp())
    assert (design.shape, design.axis_names, design.batch_axis, design.layout) == (
        (8,),
        ("data",),
        "data",
        (),
    )


def test_the_last_dimension_of_kernels_and_biases_is_divided_where_it_can_be() -> None:
    design = last_dimension(MESH, mlp())
    assert design.shape == (2, 4)
    assert axes_of(design, mlp()) == {
        "dense_1/kernel": (None, "model"),
        "dense_1/bias": ("model",),
        "dense_2/kernel": (None, "model"),
        "dense_2/bias": ("model",),
    }


def test_two_dense_layers_are_divided_by_columns_and_then_by_rows() -> None:
    assert axes_of(alternating(MESH, mlp(layers=3)), mlp(layers=3)) == {
        "dense_1/kernel": (None, "model"),
        "dense_1/bias": ("model",),
        "dense_2/kernel": ("model", None),
        "dense_3/kernel": (None, "model"),
        "dense_3/bias": ("model",),
        "output/kernel": ("model", None),
    }


def test_a_dense_layer_without_a_partner_is_divided_by_columns() -> None:
    alone = dense("output", 10, 64)
    assert axes_of(alternating(MESH, alone), alone) == {
        "output/kernel": (None, "model"),
        "output/bias": ("model",),
    }


def test_a_batch_normalization_between_both_is_divided_and_one_over_all_features_ends_a_pair() -> None:
    def between(parts: list[Weight]) -> list[Weight]:
        return [*dense("dense_1", 8, 64), *parts, *dense("dense_2", 64, 8)]

    with_batches = between(batch_norm("batch_norm_1", 64))
    divided = axes_of(alternating(MESH, with_batches), with_batches)
    assert divided["batch_norm_1/moving_mean"] == divided["batch_norm_1/gamma"] == ("model",)
    assert divided["dense_2/kernel"] == ("model", None)
    with_layers = between(norm("norm_1", 64))
    divided = axes_of(alternating(MESH, with_layers), with_layers)
    assert "norm_1/gamma" not in divided
    assert divided["dense_2/kernel"] == (None, "model")


def test_attention_is_divided_by_heads_and_embeddings_by_words() -> None:
    divided = axes_of(alternating(MESH, transformer()), transformer())
    for part in ("query", "key", "value"):
        assert divided[f"attention_1/{part}/kernel"] == (None, "model", None)
        assert divided[f"attention_1/{part}/bias"] == ("model", None)
    assert divided["attention_1/attention_output/kernel"] == ("model", None, None)
    assert divided["text_1/embeddings"] == ("model", None)
    assert divided["expand_1/kernel"] == (None, "model")
    assert divided["contract_1/kernel"] == ("model", None)
    whole = {"attention_1/attention_output/bias", "position/embeddings", "contract_1/bias", "norm/gamma"}
    assert whole.isdisjoint(divided)


def test_heads_that_cannot_be_divided_leave_the_whole_attention_whole() -> None:
    weights = transformer(heads=2)
    divided = axes_of(alternating(MESH, weights), weights)
    assert not [path for path in divided if path.startswith("attention_1/")]


def test_recurrent_layers_and_convolutions_stay_whole() -> None:
    weights = [
        Weight("lstm/kernel", (8, 64)),
        Weight("lstm/recurrent_kernel", (16, 64)),
        Weight("lstm/bias", (64,)),
        Weight("conv/kernel", (3, 3, 8, 64)),
        Weight("conv/bias", (64,)),
    ]
    assert alternating(MESH, weights).layout == ()


def test_everything_that_can_be_divided_is_fully_sharded_over_all_devices() -> None:
    weights = [*transformer(), Weight("odd/kernel", (3, 5)), Weight("scale", ())]
    design = fully_sharded(MESH, weights)
    assert (design.shape, design.batch_axis) == ((8,), "data")
    divided = axes_of(design, weights)
    assert divided["text_1/embeddings"] == ("data", None)
    assert divided["expand_1/kernel"] == (None, "data"), "its largest dimension"
    assert {"odd/kernel", "scale", "output/bias"}.isdisjoint(divided)


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: plan.name)
@pytest.mark.parametrize("weights", [mlp(4), transformer(), transformer(heads=2), []], ids=len)
@pytest.mark.parametrize("mesh", [MESH, LINE, MeshSpec(shape=(3,), axis_names=("x",), batch_axis=None)])
def test_every_plan_is_valid_keeps_the_devices_and_matches_each_variable_once(
    plan: object, weights: list[Weight], mesh: MeshSpec
) -> None:
    design = plan.make(mesh, weights)  # type: ignore[attr-defined]
    assert (design.size(), design.kind, design.simulate) == (mesh.size(), mesh.kind, mesh.simulate)
    placements = place_all(weights, design)
    assert all(len(placement.rules) < 2 and not placement.problem for placement in placements)
    assert {placement.rule for placement in placements} >= set(range(len(design.layout)))


def test_plans_save_memory_in_their_order() -> None:
    weights = transformer(width=512)

    def total(design: MeshSpec) -> int:
        placements = place_all(weights, design)
        return memory_on_device(placements, design, slots=2, batch=8, activations_per_row=0).total

    totals = [
        total(PLANS[name].make(MESH, weights)) for name in ("data_parallel", "alternating", "fully_sharded")
    ]
    assert totals == sorted(totals, reverse=True)
    assert totals[2] < totals[0] / 7.5


@pytest.mark.parametrize(
    ("devices", "shape"), [(8, (4, 2)), (4, (2, 2)), (2, (1, 2)), (7, (1, 7)), (16, (4, 4)), (1, (1, 1))]
)
def test_devices_on_one_axis_get_a_second_one(devices: int, shape: tuple[int, int]) -> None:
    mesh, axis = with_model_axis(MeshSpec(shape=(devices,), axis_names=("data",)))
    assert (mesh.shape, axis, mesh.batch_axis) == (shape, "model", "data")


def test_a_resized_mesh_has_a_longer_or_shorter_batch_axis() -> None:
    larger = resize(MESH, 16)
    assert larger is not None
    assert (larger.shape, larger.simulate) == ((4, 4), 16)
    assert resize(MESH, 2) is None
    assert resize(MeshSpec(shape=(4,), axis_names=("model",), batch_axis=None), 8) is None
