"""Runs the dry build task: builds the user code's model, and reports its hyperparameters and properties."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.kinds.dry_build.payload import DryBuildTask
from jobs.spec.checks.dry_build import BuiltModel, DataShape
from jobs.spec.plan.model_state import ModelState
from workers.engine.arrays import Array
from workers.engine.data.dataset import load_dataset
from workers.engine.errors import BadSpec, CodeBuildFailure, CodeFailure, CodeFitFailure
from workers.engine.evaluation.metric_results import notes_on, numbers_of
from workers.engine.models.abstract.abstract_build import state_of
from workers.engine.models.abstract.abstract_models import build_code_abstract
from workers.engine.models.code_models import code_space
from workers.engine.models.code_models.code_build import CodeBuild, build_code, preprocess_of
from workers.engine.models.code_models.code_space import SpaceExplorer
from workers.engine.models.code_models.code_values import other_values, thresholds_in
from workers.engine.models.code_models.index_layers import layers_of_indices
from workers.engine.models.code_models.metric_traps import notes_on_metrics
from workers.engine.models.code_models.output_meaning import notes_on_outputs
from workers.engine.models.code_models.saving import NotSaved, check_saving
from workers.engine.models.keras_private import build_metrics, layers_inside
from workers.engine.models.own_code.entries import entry_of
from workers.engine.models.own_code.failures import calling
from workers.engine.models.own_code.in_use import code_folder, forget_after_use, notes, using_code
from workers.engine.models.own_objects import custom_objects_of
from workers.engine.models.precision import attention_in_float16, needs_gpu_in_float16, note_on_scale
from workers.engine.models.scaling import unit_scaling
from workers.engine.phases import announced_to
from workers.engine.report import Report
from workers.engine.tasks.dry_fit import Measured
from workers.engine.training.fit_arguments import accepted, replaced
from workers.engine.training.fit_results import NOT_TRAINED, Untouched

SEED = 1
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
    # Data have their statistics only once they are split; no variable depends on them.
    scaling = unit_scaling(shape.input_shape[-1]) if task.model.normalize else None
    explorer = SpaceExplorer(lambda: report.phase("working"), thresholds_in(code_folder()))

    def build(hyperparameters: Any) -> None:
        code_space.clear()
        build_code(hypermodel, hyperparameters, shape, scaling=scaling)

    explorer.explore(build, lambda hyperparameters: _build_first(hypermodel, hyperparameters, build))
    code_space.clear()
    code_build = build_code(hypermodel, explorer.defaults(), shape, scaling=scaling)
    measured = Measured()
    metrics = _metric_names(code_build, explorer, hypermodel, measured)
    # Those that follow try whether the model can be saved, beside the budget of the search for the space.
    builds = explorer.builds
    unsaved = _why_unsaved(explorer, hypermodel, code_build, Path(report.folder))
    space = explorer.space()
    report.log(f"{len(space)} hyperparameters in {builds} builds")
    model = code_build.model
    notes_of_model = tuple(_notes_of(code_build))
    index_layers = layers_of_indices(code_build) if scaling is not None else ()
    # Last: code may keep parts of a model, which have no values afterwards.
    state, unlisted = _state_of(hypermodel, explorer.defaults(), code_build)
    return BuiltModel(
        space=space,
        is_compiled=code_build.is_compiled,
        own_fit=code_build.own_fit,
        one_call=not code_build.is_plain,
        loss=_loss_name(model) if code_build.is_compiled else "",
        metrics=metrics,
        task=shape.task,
        measures_all=not code_build.own_fit or not measured.returns_number,
        measured_by_spec=not code_build.evaluates_rows,
        replaced=tuple(sorted(replaced(hypermodel))) if code_build.own_fit else (),
        input_shape=_input_shape(code_build),
        output_shape=(2 if code_build.output.startswith("two_") else shape_width(shape),),
        output=code_build.output,
        one_hot=code_build.targets_form == "one_hot",
        parameters=int(model.count_params()),
        custom_objects=tuple(custom_objects_of(model)),
        builds=builds,
        most_builds=code_space.MAX_BUILDS,
        notes=(*((unsaved,) if unsaved else ()), *notes(), *explorer.notes, *notes_of_model, *unlisted),
        unsaved=unsaved,
        unasked=explorer.unasked(space),
        variables=state.variables,
        optimizer_bytes=state.optimizer_bytes,
        row_bytes=state.row_bytes,
        attention=_attention_of(hypermodel, explorer.defaults(), code_build),
        index_layers=index_layers,
    )


def _metric_names(
    code_build: CodeBuild, explorer: SpaceExplorer, hypermodel: Any, measured: Measured
) -> tuple[str, ...]:
    """Return the names of the measures that an objective may have, after a short training if one is needed.

    Args:
        code_build: the model with the defaults.
        explorer: records the hyperparameters that a `fit` declares.
        hypermodel: has built the model.
        measured: records the measures of a `fit`.
    """
    if code_build.own_fit or (not code_build.is_plain and code_build.is_compiled):
        _fit_once(code_build, explorer, hypermodel, measured)
        if code_build.evaluates_rows:
            return tuple(measured.names)
        # The experiment measures the validation rows, beside which values of the code are none.
        return tuple(name for name in measured.names if not name.startswith("val_"))
    if code_build.is_plain and code_build.is_compiled:
        return _compiled_metrics(code_build, explorer)
    return ()


def _state_of(
    hypermodel: Any, hyperparameters: Any, code_build: CodeBuild
) -> tuple[ModelState, tuple[str, ...]]:
    """Return the model's variables, and sentences about how they were found."""
    forget_after_use()
    try:
        built = build_code_abstract(
            hypermodel, hyperparameters, code_build.shape, code_build.output, scaling=code_build.scaling
        )
    except CodeFailure as failure:
        return ModelState(), (f"the model's variables are not known: {failure}",)
    return state_of(built), (built.note,) if built.note else ()


def _attention_of(hypermodel: Any, hyperparameters: Any, code_build: CodeBuild) -> tuple[str, ...]:
    """Return the layers that compute attention in float16 under mixed_float16, which CPUs cannot do."""
    if not any(map(needs_gpu_in_float16, layers_inside(code_build.model))):
        return ()
    forget_after_use()
    try:
        shape, output = code_build.shape, code_build.output
        built = build_code_abstract(
            hypermodel, hyperparameters, shape, output, "mixed_float16", scaling=code_build.scaling
        )
    # The model itself can be built; a training with this policy reports why it cannot.
    except (BadSpec, CodeFailure):
        return ()
    return attention_in_float16(built.made.model)


def _build_first(hypermodel: Any, hyperparameters: Any, build: Callable[[Any], None]) -> None:
    """Build with the defaults, after the class has declared hyperparameters beforehand, as in KerasTuner."""
    declare = getattr(hypermodel, "declare_hyperparameters", None)
    if declare is not None:
        with calling(CodeBuildFailure, "declare_hyperparameters"):
            declare(hyperparameters)
    build(hyperparameters)


def _why_unsaved(explorer: SpaceExplorer, hypermodel: Any, code_build: CodeBuild, folder: Path) -> str:
    """Return why the model cannot be saved or loaded again; an empty text if it can.

    With the defaults alone, a class without `get_config` may be loaded by luck: by those of its constructor.
    """
    x, _ = random_rows(code_build.shape)
    reasons: list[str] = []

    def build(hyperparameters: Any) -> CodeBuild:
        # Both builds draw the same numbers, and number their layers in the same way.
        code_space.clear()
        keras.utils.set_random_seed(SEED)
        return build_code(hypermodel, hyperparameters, code_build.shape, scaling=code_build.scaling)

    def check(hyperparameters: Any) -> None:
        copied = hyperparameters.copy()
        first = build(hyperparameters)
        try:
            check_saving(first, build(copied), folder, x)
        except NotSaved as failure:
            reasons.append(str(failure))

    check(explorer.defaults())
    if not reasons and (others := other_values(explorer.defaults())):
        explorer.attempt(check, others)
    return reasons[0] if reasons else ""


def _notes_of(code_build: CodeBuild) -> Iterator[str]:
    """Yield sentences about the model."""
    if code_build.scaling is not None and preprocess_of(code_build.hypermodel) is not None:
        yield "preprocess(x) of the code gets the rows after they are normalized"
    if code_build.is_compiled:
        yield from note_on_scale(code_build.model)
        yield from notes_on_outputs(
            code_build.code_model,
            lambda rows: code_build.model.predict_on_batch(code_build.prepared(rows)),
            code_build.output,
            code_build.shape,
        )
        yield from notes_on_metrics(
            code_build.code_model,
            code_build.output,
            code_build.shape,
            is_one_hot=code_build.targets_form == "one_hot",
        )
    if not code_build.evaluates_rows:
        name = type(code_build.model).__name__
        yield (
            f"Keras cannot evaluate {name}: it has its own training step, but neither a test_step nor a "
            "loss for that of Keras. Validation rows are measured by the loss and the metrics of the step "
            "Training; add test_step to measure them by the code"
        )


def _input_shape(code_build: CodeBuild) -> tuple[int | None, ...]:
    model = code_build.model
    takes_rows = code_build.preprocess is None and len(getattr(model, "inputs", None) or ()) == 1
    return tuple(model.inputs[0].shape[1:]) if takes_rows else code_build.shape.input_shape


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
        built = build_code(hypermodel, hyperparameters, code_build.shape, scaling=code_build.scaling)
        if history:
            # Its training is known; only its declarations are looked for.
            built.model.fit = lambda *_, **__: history[0]
        x, y = random_rows(code_build.shape)
        x, targets = built.prepared(x), built.targets(y)
        before = Untouched(built.model)
        with calling(CodeFitFailure, "fit"):
            keras.config.disable_interactive_logging()
            arguments: dict[str, Any] = {
                "batch_size": ROWS // 2,
                "epochs": 1,
                "callbacks": [measured.callback(built.model)],
            }
            if built.evaluates_rows:
                arguments["validation_data"] = (x, targets)
            if built.own_fit:
                given = accepted(hypermodel, arguments)
                returned = hypermodel.fit(hyperparameters, built.model, x, targets, **given)
                if not history and NOT_TRAINED not in explorer.notes and before.is_still_so():
                    explorer.notes.append(NOT_TRAINED)
            else:
                returned = built.model.fit(x, targets, **arguments)
        if isinstance(returned, keras.callbacks.History):
            history.append(returned)
        measured.add_returned(returned, built.model)

    if code_build.own_fit:
        explorer.explore(fit)
    else:
        # The fit of Keras declares nothing.
        explorer.use(fit, {})
    explorer.notes += measured.notes
