"""The expected speed-up, the memory and the advice for a batch."""

import pytest

from jobs.spec.plan.mesh.advice import scale_batch
from jobs.spec.plan.mesh.layout_plans import alternating, data_parallel, fully_sharded, last_dimension
from jobs.spec.plan.mesh.memory import memory_on_device
from jobs.spec.plan.mesh.placement import Weight, place_all
from jobs.spec.plan.mesh.speed import HARDWARE, Hardware, speed_ups, step_time
from jobs.spec.sections.mesh import MeshSpec
from tests.experiments.mesh.models import MESH, mlp, transformer

GPU = HARDWARE["gpu"]
LINE = MeshSpec(shape=(8,), axis_names=("data",), simulate=8)


def test_a_tiny_model_does_not_pay_and_a_large_batch_does() -> None:
    tiny = {row.devices: row for row in speed_ups(mlp(), LINE, 32, GPU)}
    assert tiny[2].pays is False
    assert tiny[2].pays_growing is True, "twice the rows in nearly the same time"
    large = {row.devices: row for row in speed_ups(mlp(units=8192), LINE, 65536, GPU)}
    assert large[8].pays
    assert large[8].same_batch is not None
    assert 5 < large[8].same_batch < 8


def test_many_devices_pay_only_if_each_doubling_does() -> None:
    line = MeshSpec(shape=(64,), axis_names=("data",))
    rows = {row.devices: row for row in speed_ups(mlp(units=2048), line, 512, GPU)}
    assert rows[64].same_batch is not None
    assert rows[8].same_batch is not None
    assert rows[64].pays == (rows[64].same_batch >= 1.2**3 * rows[8].same_batch)


def test_no_expectation_exceeds_the_number_of_devices() -> None:
    for weights in (mlp(units=4096), transformer(width=1024)):
        for plan in (data_parallel, last_dimension, alternating, fully_sharded):
            for row in speed_ups(weights, plan(MESH, weights), 4096, GPU):
                assert row.same_batch is None or row.same_batch <= row.devices
                assert row.growing_batch is None or row.growing_batch <= row.devices + 1e-9


def test_numbers_that_the_other_axes_do_not_divide_have_no_expectation() -> None:
    rows = {row.devices: row for row in speed_ups(mlp(), MESH, 64, GPU)}
    assert rows[2].step is None
    assert rows[4].step is not None
    assert 16 in {
        row.devices for row in speed_ups(mlp(), MeshSpec(shape=(16,), axis_names=("data",)), 64, GPU)
    }


def test_data_parallel_sends_the_gradients_by_a_ring() -> None:
    bytes_of_all = sum(weight.size * 4 for weight in mlp())
    assert step_time(mlp(), LINE, 64, GPU).bytes == pytest.approx(2 * 7 / 8 * bytes_of_all)
    assert step_time(mlp(), None, 64, GPU).bytes == 0


def test_fully_sharded_sends_one_and_a_half_times_as_much() -> None:
    weights = [Weight("a/kernel", (64, 64)), Weight("b/kernel", (64, 64))]
    ratio = (
        step_time(weights, fully_sharded(LINE, weights), 64, GPU).bytes
        / step_time(weights, LINE, 64, GPU).bytes
    )
    assert ratio == pytest.approx(1.5)


def test_a_pair_of_layers_sends_less_than_two_layers_divided_by_columns() -> None:
    weights = mlp(layers=2, units=4096, outputs=4096)[:4]
    pair, columns = alternating(MESH, weights), last_dimension(MESH, weights)
    assert step_time(weights, pair, 1024, GPU).bytes < step_time(weights, columns, 1024, GPU).bytes


def test_positions_multiply_the_work() -> None:
    one, many = transformer(positions=1), transformer(positions=64)
    assert step_time(many, None, 8, GPU).compute == pytest.approx(
        64 * step_time(one, None, 8, GPU).compute, rel=0.02
    )


@pytest.mark.parametrize(
    ("hardware", "part"),
    [
        (GPU._replace(flops=GPU.flops * 2), "compute"),
        (GPU._replace(link=GPU.link * 2, latency=0), "exchange"),
    ],
)
def test_faster_hardware_shortens_its_part(hardware: Hardware, part: str) -> None:
    before, after = (step_time(mlp(units=2048), LINE, 512, each) for each in (GPU, hardware))
    assert getattr(after, part) < 0.51 * getattr(before, part)


def test_memory_divides_what_the_design_divides() -> None:
    weights = [Weight("dense_1/kernel", (64, 64)), Weight("norm/mean", (64,), trainable=False)]
    design = last_dimension(MESH, weights)
    parts = memory_on_device(place_all(weights, design), design, slots=2, batch=10, activations_per_row=8.0)
    assert parts == (64 * 16 * 4 + 64 * 4, 64 * 16 * 4, 2 * 64 * 16 * 4, 5 * 8)
    unknown = memory_on_device(place_all(weights, None), None, slots=0, batch=10, activations_per_row=None)
    assert unknown.activations is None
    assert unknown.total == (64 * 64 + 64) * 4 + 64 * 64 * 4


def test_a_half_precision_variable_has_half_the_bytes() -> None:
    (placement,) = place_all([Weight("a/kernel", (8, 8), itemsize=2)], None)
    assert placement.bytes == 128


def test_the_advice_scales_batch_and_rate_and_says_where_it_ends() -> None:
    advice = scale_batch(256, 0.1, 8, optimizer="sgd", rows=1_000_000)
    assert (advice.batch, advice.linear, advice.suits_root, advice.limits) == (2048, 0.8, False, ())
    adam = scale_batch(2048, 0.001, 8, optimizer="adam", rows=40_000)
    assert adam.suits_root
    assert adam.root == pytest.approx(0.001 * 8**0.5)
    assert "beyond the 8,192" in adam.limits[0]
    assert "An epoch would have 2 steps" in adam.limits[1]
    assert scale_batch(32, 0.001, 2, optimizer="adam", rows=None).limits == ()
