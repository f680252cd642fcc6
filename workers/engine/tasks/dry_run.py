"""Runs the dry run task: trains some steps in float32 and with another precision, and compares both."""

import math
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jobs.kinds.dry_run.payload import DryRunTask
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.policies import needs_double
from jobs.spec.sections.precision import PrecisionSpec
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.errors import BadSpec
from workers.engine.models import base_models
from workers.engine.models.optimizer import ensure_built
from workers.engine.models.own_code.in_use import using_code
from workers.engine.models.precision import compute_in_double, scaling_metrics
from workers.engine.phases import announced_to
from workers.engine.report import Report, finite_or_none
from workers.engine.tasks.latency import hardware
from workers.engine.tasks.steps import Steps
from workers.engine.training.prepare import prepare

GROUP = 10
"""Steps whose mean loss is one point."""
MOST_SECONDS = 60.0
"""The time for each precision after the compilation. A longer run ends with fewer steps."""


def run(task: DryRunTask, report: Report) -> dict[str, Any]:
    """Train some steps with both precisions, on the same rows and from the same initial values.

    Returns:
        `comparison`: see `PrecisionComparison`.

    Raises:
        BadData, BadSpec: see `prepare.prepare`.
        CodeFailure: the code builds no model for these data.
    """
    steps = Steps(report, 3)
    steps.begin("loading the data")
    spec = task.spec
    with using_code(task.code, Path(task.folder)), announced_to(report.phase):
        base_models.provide(task.base_model)
        dataset = load_dataset(
            task.dataset,
            spec.required_data,
            spec.texts,
            task.in_memory_bytes,
            base_models.features_of(spec.model),
        )
        rows = _some_rows(dataset, spec)
        single = PrecisionSpec(matmul=spec.precision.matmul)
        steps.begin("training in float32")
        baseline = _train(_with(spec, single), dataset, rows, task.steps)
        steps.begin(f"training in {spec.precision.policy}")
        compared = _train(spec, dataset, rows, task.steps)
    steps.done()
    comparison = {
        "baseline": baseline,
        "compared": compared,
        "steps_per_loss": max(math.ceil(len(rows) / spec.fit.batch_size), 1),
        "rows": len(rows),
        "platform": jax.default_backend(),
        "hardware": hardware(task.threads),
    }
    return {"comparison": comparison}


def _with(spec: ExperimentSpec, precision: PrecisionSpec) -> ExperimentSpec:
    return spec.model_copy(update={"precision": precision})


def _some_rows(dataset: Dataset, spec: ExperimentSpec) -> Array:
    """Return training rows for a group of steps, drawn at random: a file may have its classes in order."""
    train = dataset.parts.train
    count = min(GROUP * spec.fit.batch_size, len(train))
    chosen = np.random.default_rng(spec.fit.seed).choice(train, count, replace=False)
    return np.asarray(np.sort(chosen))


def _ignore(batch: int) -> None:
    """Act after no batch: a dry run is too short to be interrupted."""


def _train(spec: ExperimentSpec, dataset: Dataset, rows: Array, steps: int) -> dict[str, Any]:
    """Train with the precision in `spec` and return a `PrecisionRun` as JSON values."""
    compute_in_double(needs_double(spec.precision))
    prepared = prepare(spec, dataset, rows, name="dry_run", seed=spec.fit.seed)
    model = prepared.model
    if prepared.program is None:
        raise BadSpec(
            f"{spec.model.info.name} trains its model by one call of fit, of which no first steps can be run"
        )
    ensure_built(model)
    groups = math.ceil(steps / prepared.batches.steps)
    loop = prepared.loop(epochs=groups)
    losses: list[float] = []
    seconds: list[float] = []
    began = time.monotonic()
    while len(losses) < groups and (not seconds or time.monotonic() - began < MOST_SECONDS):
        start = time.perf_counter()
        losses.append(loop.epoch(len(losses) + 1, 0, [], _ignore)["loss"])
        seconds.append(time.perf_counter() - start)
        if len(losses) == 1:
            # The first group includes the compilation.
            began = time.monotonic()
        if not math.isfinite(losses[-1]):
            break
    loop.sync()
    loop.close()
    scaling = scaling_metrics(model.optimizer, len(losses) * prepared.batches.steps)
    variables = [*model.variables, *model.optimizer.variables]
    return {
        "policy": spec.precision.policy,
        "losses": [finite_or_none(loss) for loss in losses],
        "seconds_per_step": min(seconds[1:]) / prepared.batches.steps if seconds[1:] else None,
        "variable_bytes": sum(int(variable.value.nbytes) for variable in variables),
        "skipped_steps": int(scaling["skipped_steps"]) if scaling else None,
        "is_finite": all(map(math.isfinite, losses)),
    }
