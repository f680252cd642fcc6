"""An estimate on 8 simulated devices is compared with the arrays of a real training."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest

from jobs.kinds.mesh_estimate.payload import MeshEstimateResult
from jobs.spec.plan.compiled_step import CompiledStep
from tests.present import present


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("estimate")
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.processes.estimate_child", str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def estimate(found: Any) -> MeshEstimateResult:
    return MeshEstimateResult.model_validate(found["estimate"])


@pytest.fixture(scope="module")
def step(estimate: MeshEstimateResult) -> CompiledStep:
    return present(estimate.step)


def test_the_state_is_exact_on_every_device(found: Any, step: CompiledStep) -> None:
    assert found["real"]["weights"] == [step.weights] * 8
    assert found["real"]["optimizer"] == [step.optimizer] * 8


def test_the_variables_are_those_of_the_training_and_have_no_bytes_themselves(
    found: Any, estimate: MeshEstimateResult
) -> None:
    listed = sorted([v.path, list(v.shape), v.dtype] for v in estimate.state.variables)
    assert listed == found["real"]["paths"]
    assert found["left"] < 100_000


def test_the_temporaries_have_the_size_of_what_a_training_needs(found: Any, step: CompiledStep) -> None:
    # The process has grown by all devices together, and by what Keras and the compiler keep.
    per_device = found["real"]["grown"] / 8
    assert step.expected_temporaries < 40 * max(per_device, 1_000_000)
    assert step.temporaries > step.gradients / 2


def test_the_gradients_are_exchanged_along_the_batch(step: CompiledStep) -> None:
    exchanged = {row.kind: row for row in step.collectives}
    # Each device sums the gradients of its own part of the variables.
    assert exchanged["all-reduce"].bytes >= step.gradients
    assert step.flops is not None and step.flops > 2 * 512 / 2 * 64 * 256 / 4


def test_the_largest_batch_is_confirmed(estimate: MeshEstimateResult, step: CompiledStep) -> None:
    largest = present(estimate.largest)
    assert largest.confirmed and largest.rows % 2 == 0
    assert largest.rows >= step.batch_size or step.total > largest.device_bytes


def test_progress_is_reported_after_each_compilation(found: Any) -> None:
    assert [args[0] for args in found["progress"]] == list(range(1, len(found["progress"]) + 1))
    assert found["progress"][0][1:] == [3, "compilations"]


def test_own_code_is_estimated_with_its_layout(found: Any) -> None:
    result = MeshEstimateResult.model_validate(found["code"])
    own = present(result.step)
    sizes = {v.path.rpartition("hidden/")[2]: 4 * math.prod(v.shape) for v in result.state.variables}
    whole = sum(4 * math.prod(v.shape) for v in result.state.variables)
    assert own.weights == whole - sizes["kernel"] * 3 // 4
    assert own.optimizer == 2 * own.weights + result.state.optimizer_bytes
    assert own.collectives and not result.notes
