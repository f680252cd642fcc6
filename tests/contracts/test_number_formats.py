"""The table of number formats agrees with NumPy and ml_dtypes, and the policies refer to it."""

import ml_dtypes
import pytest

from jobs.spec.accelerated_formats import acceleration
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.number_formats import FORMATS, NumberFormat
from jobs.spec.plan.training_memory import memory_per_device
from jobs.spec.policies import POLICIES, needs_double, policy_of_layer
from jobs.spec.sections.precision import PrecisionSpec
from tests.engine.models.test_variables import image_profile
from webapp.report_figures.number_formats import WIDTH, figure_of


@pytest.mark.parametrize("entry", FORMATS.values(), ids=list(FORMATS))
def test_a_format_has_the_numbers_of_the_libraries(entry: NumberFormat) -> None:
    info = ml_dtypes.finfo(entry.name)
    assert (entry.bits, entry.exponent, entry.mantissa) == (info.bits, info.nexp, info.nmant)
    assert entry.largest == float(info.max)
    assert entry.smallest == float(info.smallest_normal)
    assert entry.resolution == float(info.eps)


@pytest.mark.parametrize("entry", FORMATS.values(), ids=list(FORMATS))
def test_a_drawing_has_a_part_for_each_bit_and_the_range_on_its_line(entry: NumberFormat) -> None:
    figure = figure_of(entry)
    assert [part.bits for part in figure.parts] == [1, entry.exponent, entry.mantissa]
    assert sum(part.width for part in figure.parts) == pytest.approx(WIDTH * entry.bits / 64, abs=0.3)
    assert 0 <= figure.first < WIDTH / 2 < figure.last <= WIDTH


def test_input_scaling_and_output_are_never_below_float32_but_follow_float64() -> None:
    for policy, output in (("mixed_float16", "float32"), ("float8", "float32"), ("float64", "float64")):
        precision = PrecisionSpec.model_validate({"policy": policy})
        assert policy_of_layer("output", precision) == output
        assert policy_of_layer("dense_1", precision) == policy


def test_an_override_alone_needs_x64() -> None:
    assert needs_double(
        PrecisionSpec.model_validate({"overrides": [{"match": "dense", "policy": "float64"}]})
    )
    assert not needs_double(PrecisionSpec(policy="float8"))


def memory(**precision: object) -> tuple[int, int, int, int]:
    body = {
        "data": {"dataset": "d"}, "model": {"template": "mlp", "args": {"units": 16, "layers": 1}},
        "fit": {"batch_size": 8, "optimizer": "adam"}, "precision": precision,
    }  # fmt: skip
    return tuple(memory_per_device(ExperimentSpec.model_validate(body), image_profile()))  # type: ignore[return-value]


def test_the_memory_of_a_plan_counts_the_bytes_of_each_policy() -> None:
    single, mixed, double, eight = (
        memory(policy=policy) for policy in ("float32", "mixed_float16", "float64", "float8")
    )
    assert [2 * part for part in single] == list(double)
    # The weights of mixed policies are in float32, and what layers pass on is not.
    assert mixed[:3] == single[:3] and single[3] / 2 <= mixed[3] < single[3]
    assert eight[0] == single[0] + 3 * 1025 * 4 and eight[2:] == single[2:]
    hidden = memory(overrides=[{"match": "dense_1", "policy": "float64"}])
    assert hidden[0] - single[0] == 4 * (64 * 16 + 16)


@pytest.mark.parametrize(
    ("device", "speed"),
    [
        ("NVIDIA A100-SXM4-40GB", "half"),
        ("NVIDIA A30", "half"),
        ("NVIDIA H100 80GB HBM3", "half"),
        ("NVIDIA B200", "half"),
        ("Tesla V100-SXM2-16GB", "half"),
        ("NVIDIA A40", "1/32"),
        ("NVIDIA H20", "1/32"),
        ("NVIDIA B300", "1/32"),
        ("NVIDIA GeForce RTX 4090", "1/32"),
    ],
)
def test_float64_has_half_the_speed_only_on_gpus_with_units_for_it(device: str, speed: str) -> None:
    found = acceleration(device, "float64")
    assert (found.is_faster, found.sentence.startswith(speed)) == (False, True)


def test_a_card_writes_short_fractions_without_powers_of_ten() -> None:
    shown = {name: figure_of(entry).resolution for name, entry in FORMATS.items()}
    assert (shown["bfloat16"], shown["float8_e4m3fn"], shown["float32"]) == ("0.0078", "0.12", "1.2e-07")


@pytest.mark.parametrize(
    ("device", "policy", "is_faster"),
    [
        ("cpu", "mixed_bfloat16", False),
        ("NVIDIA H100 80GB HBM3", "float8", True),
        ("NVIDIA H200", "mixed_bfloat16", True),
        ("NVIDIA A100-SXM4-40GB", "mixed_bfloat16", True),
        ("NVIDIA A100-SXM4-40GB", "float8", False),
        ("NVIDIA GeForce RTX 4090", "float8", True),
        ("NVIDIA GeForce RTX 3090", "float8", False),
        ("Tesla T4", "mixed_float16", True),
        ("Tesla T4", "mixed_bfloat16", False),
        ("NVIDIA L4", "float8", True),
        ("TPU v5e", "mixed_bfloat16", True),
        ("Radeon", "mixed_bfloat16", None),
    ],
)
def test_a_device_accelerates_the_formats_of_its_generation(
    device: str, policy: str, is_faster: bool | None
) -> None:
    answer = acceleration(device, policy)  # type: ignore[arg-type]
    assert (answer.is_faster, bool(answer.sentence)) == (is_faster, True)


def test_a_reported_compute_capability_decides_before_the_name() -> None:
    assert acceleration("An unknown card", "float8", "8.9").is_faster is True
    assert acceleration("An unknown card", "float8", "8.6").is_faster is False
    assert acceleration("An unknown card", "mixed_float16", "6.1").is_faster is None


def test_every_policy_of_a_spec_has_a_card_and_a_verdict() -> None:
    for policy, info in POLICIES.items():
        assert PrecisionSpec.model_fields["policy"].annotation is not None and info.name == policy
        assert info.training and info.inference
        assert bool(info.refusal) == (policy in ("float16", "bfloat16"))
