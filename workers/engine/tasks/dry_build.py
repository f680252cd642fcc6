"""Runs the dry build task: builds the user code's model, and reports its hyperparameters and properties."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.kinds.dry_build.payload import DryBuildTask
from jobs.spec.checks.dry_build import BuiltModel, DataShape
from workers.engine.arrays import Array
from workers.engine.data.dataset import load_dataset
from workers.engine.errors import BadSpec, CodeBuildFailure, CodeFitFailure
from workers.engine.evaluation.metric_results import notes_on, numbers_of
from workers.engine.models import code_space
from workers.engine.models.code_build import CodeBuild, build_code
from workers.engine.models.code_space import SpaceExplorer
from workers.engine.models.keras_private import build_metrics
from workers.engine.models.own_code import calling, entry_of, notes, thresholds, using_code
from workers.engine.models.own_objects import custom_objects_of
from workers.engine.models.precision import note_on_scale
from workers.engine.phases import announced_to
from workers.engine.report import Report
from workers.engine.tasks.dry_fit import Measured
from workers.engine.training.fit_arguments import accepted, replaced

ROWS = 64
"""Random rows with which a `fit` of the code is called."""


def run(task: DryBuildTask, report: Report) -> dict[str, Any]:
    """Build the model with all values that may reveal hyperparameters.

    Returns:
        `built`: see `BuiltModel`.

    Raises:
        CodeFailure: the code cannot be imported, builds no model for the data, or its `fit` fails.
        BadData, BadSpec: the data's shape cannot be found.
    """
    with using_code(task.code, Path(task.folder)), announced_to(report.phase):
        report.phase("loading")
        shape = _shape_of(task)
        report.log(f"building {task.model.entry} for rows of the shape {shape.input_shape}")
        report.phase("working")
        return {"built": _built(task, shape, report).model_dump(mode="json")}


def _shape_of(task: DryBuildTask) -> DataShape:
    if task.shape is not None:
        return task.shape
    if task.dataset is None:
        raise BadSpec("neither the data nor their shape are known")
    return DataShape.from_schema(
        load_dataset(task.dataset, task.data, task.texts, task.in_memory_bytes).profile
    )


def _built(task: DryBuildTask, shape: DataShape, report: Report) -> BuiltModel:
    hypermodel = entry_of(task.model)
    explorer = SpaceExplorer(lambda: report.phase("working"), thresholds())

    def build(hyperparameters: Any) -> None:
        code_space.clear()
        build_code(hypermodel, hyperparameters, shape)

    explorer.explore(build, lambda hyperparameters: _build_first(hypermodel, hyperparameters, build))
    code_space.clear()
    code_build = build_code(hypermodel, explorer.defaults(), shape)
    metrics: tuple[str, ...] = ()
    measured = Measured()
    if code_build.own_fit or (not code_build.is_plain and code_build.is_compiled):
        _fit_once(code_build, explorer, hypermodel, measured)
        metrics = tuple(measured.names)
    elif code_build.is_plain and code_build.is_compiled:
        metrics = _compiled_metrics(code_build, explorer)
    space = explorer.space()
    report.log(f"{len(space)} hyperparameters in {explorer.builds} builds")
    model = code_build.model
    return BuiltModel(
        space=space,
        is_compiled=code_build.is_compiled,
        own_fit=code_build.own_fit,
        one_call=not code_build.is_plain,
        loss=_loss_name(model) if code_build.is_compiled else "",
        metrics=metrics,
        task=shape.task,
        measures_all=not code_build.own_fit or not measured.returns_number,
        replaced=tuple(sorted(replaced(hypermodel))) if code_build.own_fit else (),
        input_shape=tuple(_shape(model.input_shape)) if getattr(model, "inputs", None) else shape.input_shape,
        output_shape=(2 if code_build.output.startswith("two_") else shape_width(shape),),
        output=code_build.output,
        one_hot=code_build.one_hot,
        parameters=int(model.count_params()),
        custom_objects=tuple(custom_objects_of(model)),
        builds=explorer.builds,
        most_builds=code_space.MAX_BUILDS,
        notes=(*notes(), *explorer.notes, *(note_on_scale(model) if code_build.is_compiled else ())),
    )


def _build_first(hypermodel: Any, hyperparameters: Any, build: Callable[[Any], None]) -> None:
    """Build with the defaults, after the class has declared hyperparameters beforehand, as in KerasTuner."""
    declare = getattr(hypermodel, "declare_hyperparameters", None)
    if declare is not None:
        with calling(CodeBuildFailure, "declare_hyperparameters"):
            declare(hyperparameters)
    build(hyperparameters)


def _shape(shape: Any) -> tuple[int | None, ...]:
    return tuple(shape[1:])


def shape_width(shape: DataShape) -> int:
    """Return a model's output count for data with this shape."""
    return 1 if shape.task == "binary" else shape.outputs


def _loss_name(model: Any) -> str:
    loss = model.loss
    return loss if isinstance(loss, str) else str(getattr(loss, "name", getattr(loss, "__name__", "")))


def random_rows(shape: DataShape) -> tuple[Array, Array]:
    """Return rows and targets with this shape; each class occurs."""
    generator = np.random.default_rng(0)
    x = generator.random((ROWS, *shape.input_shape), dtype=np.float32)
    if shape.task in ("binary", "multiclass"):
        return x, np.arange(ROWS, dtype=np.int32) % max(shape.outputs, 2)
    if shape.task == "multilabel":
        return x, generator.integers(0, 2, (ROWS, shape.outputs)).astype(np.float32)
    return x, generator.random((ROWS, shape.outputs), dtype=np.float32)


def _compiled_metrics(code_build: CodeBuild, explorer: SpaceExplorer) -> tuple[str, ...]:
    """Return which values validation computes, by name, after loss and metrics were called once."""
    x, y = random_rows(code_build.shape)
    with calling(CodeFitFailure, "computing the loss and the metrics"):
        build_metrics(code_build.model, (x, code_build.targets(y)))
        results = code_build.model.get_metrics_result()
    explorer.notes += notes_on(results)
    return tuple(f"val_{name}" for name in numbers_of(results))


def _fit_once(code_build: CodeBuild, explorer: SpaceExplorer, hypermodel: Any, measured: Measured) -> None:
    """Call the class's `fit`, or that of Keras, with random rows; record its measures."""
    history: list[Any] = []

    def fit(hyperparameters: Any) -> None:
        code_space.clear()
        built = build_code(hypermodel, hyperparameters, code_build.shape)
        if history:
            # Its training is known; only its declarations are looked for.
            built.model.fit = lambda *_, **__: history[0]
        x, y = random_rows(code_build.shape)
        targets = built.targets(y)
        with calling(CodeFitFailure, "fit"):
            keras.config.disable_interactive_logging()
            arguments: dict[str, Any] = {
                "batch_size": ROWS // 2,
                "epochs": 1,
                "validation_data": (x, targets),
                "callbacks": [measured.callback(built.model)],
            }
            if built.own_fit:
                given = accepted(hypermodel, arguments)
                returned = hypermodel.fit(hyperparameters, built.model, x, targets, **given)
            else:
                returned = built.model.fit(x, targets, **arguments)
        if isinstance(returned, keras.callbacks.History):
            history.append(returned)
        measured.add_returned(returned, built.model)

    explorer.explore(fit)
    explorer.notes += measured.notes
