"""Runs the task that estimates a training on a mesh: variables, memory, collectives, the largest batch."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jobs.kinds.mesh_estimate.payload import MeshEstimateResult, MeshEstimateTask
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.plan.compiled_step import CompiledStep, LargestBatch, Point, largest_batch
from jobs.spec.sections.mesh import MeshSpec
from workers.engine.compiled.step_estimate import compile_step
from workers.engine.data.dataset import load_dataset
from workers.engine.errors import BadSpec
from workers.engine.models import base_models
from workers.engine.models.abstract.abstract_build import AbstractBuild, state_of
from workers.engine.models.abstract.abstract_models import build_for_spec
from workers.engine.models.mesh import use_mesh
from workers.engine.models.own_code.in_use import forget_after_use, using_code
from workers.engine.phases import announced_to
from workers.engine.report import Report

LIBRARIES = ("keras", "jax", "jaxlib")
COMPILATIONS_FOR_LARGEST = 3
"""Two for a straight line over the batch, one that confirms the result."""
INTERVAL = 30.0
MOST_SECONDS = 1800.0
"""After this time a program that still compiles counts as stalled, as the watchdog decides."""
NO_STEP = (
    "the code compiles its model in its own fit, so its training step is not known before: temporaries and "
    "collectives are not estimated"
)


def run(task: MeshEstimateTask, report: Report) -> dict[str, Any]:
    """Build the model without values, and compile its training step for the mesh.

    Returns:
        See `MeshEstimateResult`.

    Raises:
        EngineError: the model cannot be built, or the layout does not match it.
    """
    with using_code(task.code, Path(task.folder)), announced_to(report.phase):
        report.phase("loading")
        base_models.provide(task.base_model)
        schema = _schema_of(task)
        report.phase("working")
        if task.code is not None:
            # Its modules may keep parts of the model, which have no values.
            forget_after_use()
        build = build_for_spec(task.spec, schema, task.output)
        estimate = _Estimate(task, build, report, rows=schema.rows)
        try:
            return estimate.result().model_dump(mode="json")
        finally:
            use_mesh(None, [], 1)


def _schema_of(task: MeshEstimateTask) -> Profile:
    """Return a profile that describes the model's input; the data are read only if they are needed."""
    profile, spec = Profile.model_validate(task.dataset.profile), task.spec
    features = base_models.features_of(spec.model)
    if features is None and not roles_differ(spec, profile):
        return encoded(spec, profile)
    dataset = load_dataset(task.dataset, spec.required_data, spec.texts, task.in_memory_bytes, features)
    return dataset.profile


class _Estimate:
    """Compiles the step of a model with several batches."""

    def __init__(self, task: MeshEstimateTask, build: AbstractBuild, report: Report, *, rows: int) -> None:
        self._spec, self._mesh, self._build, self._report = task.spec, _mesh_of(task), build, report
        self._rows, self._device_bytes = rows, task.device_bytes
        self._state = state_of(build)
        self._compiles = task.compiles and build.made.is_compiled
        self._lacks_step = task.compiles and not build.made.is_compiled
        self._done = 0

    def result(self) -> MeshEstimateResult:
        """Compile as often as it is needed, and return the findings."""
        step = self._compiled(self._spec.fit.batch_size) if self._compiles else None
        return MeshEstimateResult(
            state=self._state,
            step=step,
            largest=self._largest(step) if step is not None else None,
            notes=tuple(note for note in (self._build.note, NO_STEP if self._lacks_step else "") if note),
            versions={name: version(name) for name in LIBRARIES},
        )

    def _largest(self, step: CompiledStep) -> LargestBatch | None:
        if self._device_bytes is None:
            return None
        second = self._compiled(2 * step.batch_size)
        return largest_batch(
            Point(step.batch_size, step.total),
            Point(second.batch_size, second.total),
            device_bytes=self._device_bytes,
            shards=self._mesh.batch_shards(),
            most=self._rows,
            measure=lambda rows: self._compiled(rows).total,
        )

    def _compiled(self, rows: int) -> CompiledStep:
        use_mesh(self._mesh, self._state.listed(), rows)
        self._report.log(f"compiling a step with {rows:,} rows for {self._mesh.size()} devices")
        self._report.phase("compiling")
        with repeated(self._report_compiling):
            step = compile_step(self._build, self._state, self._spec.fit, self._mesh, rows)
        self._done += 1
        self._report_done()
        return step

    def _report_compiling(self) -> None:
        self._report_done()
        self._report.phase("compiling")

    def _report_done(self) -> None:
        total = 1 if self._device_bytes is None else COMPILATIONS_FOR_LARGEST
        self._report.progress(self._done, max(total, self._done), "compilations")


@contextmanager
def repeated(report: Callable[[], None]) -> Iterator[None]:
    """Call `report` again and again while a program compiles, for the watchdog, up to `MOST_SECONDS`.

    The compiler may need more time than the watchdog allows for a phase, and reports nothing itself.
    """
    ended = threading.Event()

    def repeat() -> None:
        until = time.monotonic() + MOST_SECONDS
        while not ended.wait(INTERVAL) and time.monotonic() < until:
            report()

    thread = threading.Thread(target=repeat, name="compiling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _mesh_of(task: MeshEstimateTask) -> MeshSpec:
    if task.spec.mesh is None:
        raise BadSpec("the task names no mesh")
    return task.spec.mesh
