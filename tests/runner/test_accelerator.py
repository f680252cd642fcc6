"""A runner that was given a GPU uses it or fails; it never trains on the CPU without notice."""

from pathlib import Path
from typing import Any

import pytest

from jobs.messages.task import DatasetFile
from tests.runner.harness import runner
from tests.runner.tasks import trial_task
from workers.runner.accelerator import expected_platform
from workers.runner.environment import Environment

GPU = {"CUDA_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        (None, GPU, "gpu"),
        (None, {"CUDA_VISIBLE_DEVICES": ""}, None),
        (None, {}, None),
        ("cpu", GPU, None),
        ("cuda", {"CUDA_VISIBLE_DEVICES": ""}, "gpu"),
        ("tpu", {}, "tpu"),
        (None, {"JAX_PLATFORMS": "cuda"}, "gpu"),
        (None, {"JAX_PLATFORMS": "cuda,cpu"}, "gpu"),
        (None, {"JAX_PLATFORMS": "cpu"}, None),
        (None, {"JAX_PLATFORMS": "cpu,cuda"}, None),
        (None, {"JAX_PLATFORMS": "tpu"}, "tpu"),
        ("cpu", {"JAX_PLATFORMS": "cuda"}, None),
    ],
)
def test_a_run_must_use_the_device_that_it_was_given_or_asks_for(
    platform: str | None, variables: dict[str, Any], expected: str | None
) -> None:
    assert expected_platform(Environment(1, platform), variables) == expected


@pytest.mark.parametrize("platforms", [{}, {"JAX_PLATFORMS": "cuda"}, {"JAX_PLATFORMS": "cuda,cpu"}])
def test_a_run_on_a_gpu_that_jax_cannot_use_fails_with_the_reason(
    tmp_path: Path, platforms: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The engine's tests choose the CPU for their whole process, in which this test may run too.
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    unread = DatasetFile(path="", digest="", profile={})
    # No machine has this GPU. Without it JAX would only log a warning, and train on the CPU.
    with runner(tmp_path / "given", {"CUDA_VISIBLE_DEVICES": "GPU-none", **platforms}) as process:
        failed = process.run(trial_task(tmp_path / "trial", unread))[-1]
    assert (failed.type, failed.code) == ("failed", "no_gpu")
    assert "this run needs a GPU (CUDA_VISIBLE_DEVICES: GPU-none), but JAX " in failed.message
    assert "cannot use it: ." not in failed.message, "JAX fails without a text where a plugin is missing"
