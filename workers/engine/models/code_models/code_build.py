"""Builds a model with user code for one data shape, and finds the meaning of its outputs."""

import inspect
from dataclasses import dataclass
from typing import Any

import jax
import keras
import numpy as np

from jobs.spec.checks.dry_build import DataShape, Output
from jobs.spec.sections.precision import Policy
from jobs.spec.space.search_space import Values
from workers.engine.arrays import Array
from workers.engine.errors import CodeBuildFailure, WrongShape
from workers.engine.models import keras_private
from workers.engine.models.code_models import own_steps
from workers.engine.models.code_models.loss_targets import Targets, targets_of
from workers.engine.models.code_models.output_meaning import (
    loss_name,
    meaning_of_outputs,
    only_loss,
    only_part,
)
from workers.engine.models.code_models.plain_graph import call_as_graph
from workers.engine.models.graph import has_graph
from workers.engine.models.keras_origin import is_of_keras
from workers.engine.models.own_code.entries import has_own_fit
from workers.engine.models.own_code.failures import calling
from workers.engine.models.own_code.in_use import with_policy
from workers.engine.models.precision import FLOAT8, building_policy, to_float8
from workers.engine.models.recast import layers_at_ends
from workers.engine.models.scaling import Scaling, normalization

NORMALIZE = "normalize_rows"
"""The name of the layer that normalizes rows. Layers of the code hardly have it."""


@dataclass(frozen=True)
class CodeBuild:
    """A model that code has built.

    Attributes:
        model: takes the data's rows; with the normalization and the code's function `preprocess` inside, if
            it has them, unless the attribute `preprocess` is set.
        code_model: as the code has built it; its variables are those of `model`.
        hypermodel: has built it.
        hyperparameters: KerasTuner's, with the values that were used.
        shape: the data shape.
        is_compiled: whether the code has compiled it.
        own_fit: whether the class trains it by its own fit.
        output: the meaning of its outputs.
        targets_form: how its loss takes the classes of rows.
        preprocess: the normalization and the code's function as a model, for a model with steps of its own,
            which takes their results; None for other models.
        scaling: the statistics of the normalization; None without one.
    """

    model: Any
    code_model: Any
    hypermodel: Any
    hyperparameters: Any
    shape: DataShape
    is_compiled: bool
    own_fit: bool
    output: Output
    targets_form: Targets
    preprocess: Any = None
    scaling: Scaling | None = None

    @property
    def is_plain(self) -> bool:
        """Whether its training steps can run without Keras' `fit`."""
        return not self.own_fit and _has_plain_steps(self.model, is_compiled=self.is_compiled)

    @property
    def evaluates_rows(self) -> bool:
        """Whether Keras' `fit` can evaluate it on validation rows."""
        return self.own_fit or not self.is_compiled or own_steps.can_evaluate(self.model)

    def prepared(self, x: Array) -> Any:
        """Return rows as the model takes them: (rows, …) float32, or the values that `preprocess` returns.

        Args:
            x: rows of the data, (rows, …).
        """
        rows = np.asarray(x, dtype=np.float32)
        return rows if self.preprocess is None else self.preprocess.predict(rows, verbose=0)

    def targets(self, y: Array) -> Array:
        """Return targets as its loss takes them.

        Args:
            y: class numbers, (rows,); or numbers, (rows,) or (rows, outputs).
        """
        if self.targets_form == "one_hot":
            return np.eye(self.shape.outputs, dtype=np.float32)[y]
        if self.targets_form == "column":
            return y[:, None]
        if self.shape.task == "binary" and not self.output.startswith("two_"):
            return y.astype(np.float32)[:, None]
        if self.shape.task == "regression" and y.ndim == 1:
            return y[:, None]
        return y


def _has_plain_steps(model: Any, *, is_compiled: bool) -> bool:
    """Return whether a model's training steps are those of Keras, with one loss, and may be compiled."""
    if own_steps.replaced_by(model):
        return False
    if not is_compiled:
        return True
    loss = model.loss
    is_one = isinstance(loss, str) or callable(loss)
    keeps_call = not isinstance(loss, keras.losses.Loss) or type(loss).__call__ is keras.losses.Loss.__call__
    reduces = getattr(loss, "reduction", "") is not None
    return is_one and keeps_call and reduces and bool(model.jit_compile) and not model.run_eagerly


def hyperparameters_with(values: Values) -> Any:
    """Return KerasTuner hyperparameters that have these values when the code declares them."""
    import keras_tuner

    hyperparameters = keras_tuner.HyperParameters()
    hyperparameters.values = dict(values)
    return hyperparameters


def build_code(
    hypermodel: Any,
    hyperparameters: Any,
    shape: DataShape,
    policy: Policy | None = None,
    *,
    output: Output | None = None,
    scaling: Scaling | None = None,
) -> CodeBuild:
    """Build a model for data with this shape.

    Args:
        hypermodel: from `own_code.entries.entry_of`.
        hyperparameters: given to its `build`.
        shape: the data shape.
        policy: the dtype policy of layers to which the code gives none; None: that of Keras.
        output: the meaning of its outputs, if that is known. The model then answers no rows to find it, which
            one without values for its variables cannot.
        scaling: statistics that normalize the rows before the code gets them; None: it gets them as they
            are.

    Raises:
        BadSpec: no layer implements the policy.
        CodeBuildFailure: the code fails, or returns no model.
        WrongShape: the model does not take these rows, or its outputs do not fit the target.
    """
    wanted = None if policy is None else building_policy(policy)
    model = _call_build(hypermodel, hyperparameters, wanted)
    is_compiled, own_fit = bool(model.compiled), has_own_fit(hypermodel)
    if not own_fit:
        own_steps.check_compilation(model)
    own_steps.keep_evaluation(model)
    # The first call creates the layers that a class builds lazily.
    with with_policy(wanted):
        whole, outputs, preprocess = _connected(hypermodel, model, shape, scaling, own_fit=own_fit)
    if policy == FLOAT8:
        ends = layers_at_ends(model)
        to_float8(whole, lambda layer: "float32" if id(layer) in ends else FLOAT8)
    width = _checked_width(outputs, shape)

    def answer(rows: Array) -> Any:
        # The code gets the same rows for all data, so that its answers mean the same as in the dry build.
        raw = rows if scaling is None else scaling.raw(rows)
        return whole(raw if preprocess is None else preprocess(raw))

    output = output or meaning_of_outputs(
        model,
        answer,
        is_compiled=is_compiled,
        shape=shape,
        width=width,
    )
    if not is_compiled and not own_fit and output not in ("probabilities", "numbers"):
        whole = _with_probabilities(whole, output, shape, model.name)
        output = "probabilities"
    of_classes = shape.task in ("binary", "multiclass")
    # The loss compares numbers also while a build without values is traced.
    with jax.ensure_compile_time_eval():
        targets_form = _targets_form(model, width) if is_compiled and of_classes else "numbers"
    return CodeBuild(
        model=whole,
        code_model=model,
        hypermodel=hypermodel,
        hyperparameters=hyperparameters,
        shape=shape,
        is_compiled=is_compiled,
        own_fit=own_fit,
        output=output,
        targets_form=targets_form,
        preprocess=preprocess,
        scaling=scaling,
    )


def _call_build(hypermodel: Any, hyperparameters: Any, policy: str | None) -> Any:
    """Return the model that the code builds, as its `build` returns it."""
    with calling(CodeBuildFailure, "building the model"), with_policy(policy):
        model = hypermodel.build(hyperparameters)
    if model is None:
        raise CodeBuildFailure("building the model returned nothing: end the function with `return model`")
    if not isinstance(model, keras.Model):
        raise CodeBuildFailure(f"building the model returned {type(model).__name__}, not a keras.Model")
    return model


def _with_probabilities(model: Any, output: Output, shape: DataShape, name: str) -> Any:
    """Return a model that ends with probabilities, from one whose outputs have another meaning."""
    inputs = keras.Input(shape.input_shape, dtype="float32")
    return keras.Model(inputs, finished(model(inputs), output, shape), name=name)


def _connected(
    hypermodel: Any, model: Any, shape: DataShape, scaling: Scaling | None, *, own_fit: bool
) -> tuple[Any, Any, Any | None]:
    """Return the model for these rows, its output, and a model that the rows must pass before, if any.

    The latter is the normalization with `preprocess`, where it cannot be part of the first one.

    A model of a class of its own becomes part of a functional model, which has a fixed shape and takes the
    argument `training`. One that Keras' `fit` trains stays as it is.
    """
    rows = " × ".join(map(str, shape.input_shape))
    tensors = getattr(model, "inputs", None) or ()
    inputs = keras.Input(shape.input_shape, dtype="float32")
    normalized = inputs if scaling is None else _normalization(scaling, shape)(inputs)
    preprocess = preprocess_of(hypermodel)
    if len(tensors) > 1 and preprocess is None:
        names = ", ".join(tensor.name for tensor in tensors)
        raise WrongShape(
            f"the model has {len(tensors)} inputs ({names}), but the data are one input of {rows} numbers: "
            "define a function preprocess(x) beside the entry that returns the inputs, such as "
            "{'a': x[:, :2], 'b': x[:, 2:]}"
        )
    with calling(CodeBuildFailure, "preprocess(x)"):
        prepared = normalized if preprocess is None else preprocess(normalized)
    with calling(WrongShape, f"calling the model with rows of {rows} numbers"):
        outputs = keras.tree.flatten(model(prepared))
    if len(outputs) != 1:
        raise WrongShape(
            f"the model has {len(outputs)} outputs, but there is one target: build a model with one of them, "
            "such as keras.Model(model.inputs, model.outputs[0]), and compile that"
        )
    is_prepared = scaling is not None or preprocess is not None
    if is_prepared and own_steps.replaced_by(model):
        return model, outputs[0], keras.Model(inputs, prepared)
    is_plain = not own_fit and _has_plain_steps(model, is_compiled=bool(model.compiled))
    if not is_prepared and (has_graph(model) or not is_plain):
        return model, outputs[0], None
    whole = keras.Model(inputs, outputs[0], name=model.name)
    if model.compiled:
        copy_compilation(model, whole)
    return whole, outputs[0], None


def _normalization(scaling: Scaling, shape: DataShape) -> Any:
    """Return the built layer that normalizes rows, in float32 under any policy: raw numbers may overflow."""
    layer = normalization(scaling, name=NORMALIZE, dtype="float32")
    # Mean and deviation are values also while a build without values is traced.
    with jax.ensure_compile_time_eval():
        layer.build((None, *shape.input_shape))
    return layer


def preprocess_of(hypermodel: Any) -> Any:
    """Return the function `preprocess` beside the entry, if there is one."""
    module = getattr(hypermodel, "module", None) or inspect.getmodule(type(hypermodel))
    function = getattr(module, "preprocess", None)
    return function if inspect.isfunction(function) else None


def _checked_width(outputs: Any, shape: DataShape) -> int:
    """Return a model's output count.

    Raises:
        WrongShape: it does not fit the target.
    """
    row_shape = tuple(outputs.shape[1:])
    allowed = {"binary": (1, 2)}.get(shape.task, (shape.outputs,))
    if len(row_shape) != 1 or row_shape[0] not in allowed:
        widths = " or ".join(map(str, allowed))
        what = {
            "multiclass": f"{shape.outputs} classes need",
            "multilabel": f"{shape.outputs} labels need",
        }
        needs = what.get(shape.task, f"a {shape.task} target needs")
        raise WrongShape(
            f"the model returns rows of the shape {row_shape}, but {needs} {widths}: "
            f"{_remedy(row_shape, allowed)}"
        )
    return int(row_shape[0])


def _remedy(row_shape: tuple[int | None, ...], allowed: tuple[int, ...]) -> str:
    """Return what to change: a dense layer keeps all image dimensions but the last."""
    if len(row_shape) > 1 and row_shape[-1] in allowed:
        return "add a layer such as Flatten or GlobalAveragePooling before it"
    return "change its last layer"


def _targets_form(model: Any, width: int) -> Targets:
    """Return how a compiled model's loss takes the classes of rows."""
    loss = only_loss(model)
    if width == 1 or loss is None:
        return "numbers"
    if is_of_keras(loss):
        name = loss_name(loss)
        return "numbers" if name.startswith("sparse") or name in ("crossentropy", "ce") else "one_hot"
    metrics, _ = keras_private.metrics_given(model)
    if any(loss_name(metric).startswith(("categorical", "top_k_categorical")) for metric in metrics or ()):
        return "one_hot"
    return targets_of(loss, width) if callable(loss) else "numbers"


def copy_compilation(model: Any, target: Any) -> None:
    """Compile `target`, which has one output, as `model` is compiled."""
    # The code may give parts by the name of its output, which has another name here.
    loss, loss_weights = map(only_part, keras_private.loss_given(model))
    metrics, weighted_metrics = map(only_part, keras_private.metrics_given(model))
    target.compile(
        optimizer=model.optimizer,
        loss=loss,
        loss_weights=loss_weights,
        metrics=metrics,
        weighted_metrics=weighted_metrics,
        run_eagerly=model.run_eagerly,
        steps_per_execution=model.steps_per_execution,
        jit_compile=model.jit_compile,
        auto_scale_loss=False,
    )


def finished(outputs: Any, output: Output, shape: DataShape) -> Any:
    """Return a model's final predictions as a tensor; see `finished_rows`."""
    layers = keras.layers
    if output.endswith("logits"):
        one = shape.task == "multilabel" or (output == "logits" and shape.task == "binary")
        name = "output_activation" if output.startswith("two_") else "output"
        outputs = layers.Activation("sigmoid" if one else "softmax", dtype="float32", name=name)(outputs)
    if output.startswith("two_"):
        column = layers.Reshape((2, 1))(outputs)
        second = layers.Cropping1D((1, 0))(column)
        if output == "two_probabilities":
            not_first = layers.Rescaling(-1.0, offset=1.0, dtype="float32")(layers.Cropping1D((0, 1))(column))
            second = layers.Average(dtype="float32")([second, not_first])
        outputs = layers.Flatten(name="output")(second)
    return outputs


def finished_rows(rows: Array, output: Output, shape: DataShape) -> Array:
    """Convert the trained model's predictions to those that the saved model makes.

    They are probabilities; for binary data only the second class has one.

    Args:
        rows: (rows, outputs).
        output: their meaning.
        shape: the data shape.
    """
    if output.endswith("logits"):
        one = shape.task == "multilabel" or (output == "logits" and shape.task == "binary")
        rows = 1 / (1 + np.exp(-rows)) if one else _softmax(rows)
    if output == "two_probabilities":
        # Two outputs of a sigmoid do not add up to 1: the larger one shall be the class.
        return (rows[:, 1:] + 1 - rows[:, :1]) / 2
    return rows[:, 1:] if output.startswith("two_") else rows


def unfinished_rows(rows: Array, output: Output, shape: DataShape) -> Array:
    """Return predictions from which `finished_rows` makes `rows`, as the loss and the metrics take them."""
    if output.startswith("two_"):
        rows = np.concatenate([1 - rows, rows], axis=1)
    if not output.endswith("logits"):
        return rows
    safe = np.clip(rows, 1e-7, 1 - 1e-7)
    one = shape.task == "multilabel" or (output == "logits" and shape.task == "binary")
    return np.log(safe / (1 - safe)) if one else np.log(safe)


def _softmax(rows: Array) -> Array:
    exponents = np.exp(rows - rows.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def finished_model(build: CodeBuild, name: str) -> Any:
    """Return the functional model `m_<name>`: from the data's rows to final predictions.

    Neither it nor the code's model inside it is compiled afterwards. A class of the code around a graph of
    layers is left out, so that the file does not need it.
    """
    for part in (build.model, *keras_private.layers_inside(build.model)):
        if isinstance(part, keras.Model):
            # Its optimizer, loss and metrics would be part of the file.
            part.compiled, part.optimizer = False, None
    inputs = keras.Input(build.shape.input_shape, name="input", dtype="float32")
    rows = inputs if build.preprocess is None else build.preprocess(inputs)
    outputs = keras.tree.flatten(call_as_graph(build.model, rows))[0]
    return keras.Model(inputs, finished(outputs, build.output, build.shape), name=f"m_{name}")
