"""Quantizes models to int8 with Keras: weights with a scale per output, activations with a scale per row.

Limitations measured on Keras 3.15: a model that is compiled when it is quantized keeps its float optimizer
slots; quantized sub-layers of an attention layer cannot be loaded again; convolutions have no int8
implementation; layers that compute in float16 are rejected.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from jobs.messages.reports.quantization import LayerError, SkippedLayer
from jobs.spec.base import Frozen
from workers.engine.arrays import Array
from workers.engine.errors import EngineError
from workers.engine.exports.source import ComparedLayers, ExportedFile, ExportSource
from workers.engine.models import keras_private
from workers.engine.models.files import load_model, save_model
from workers.engine.models.keras_private import layers_inside
from workers.engine.models.predict import Predictor
from workers.model_process.library_messages import plain_message

LayerFilter = Callable[[Any], bool]
"""Returns whether a layer is selected."""


class NotQuantizable(EngineError):
    """No int8 version of this model predicts the same after saving and loading as in memory."""

    code = "not_quantizable"


def write(source: ExportSource, path: Path, options: Frozen | None) -> ExportedFile:
    """Quantize a model to int8, write it to `path` and return it as loaded from there.

    Each selection of layers is tried until the loaded file predicts exactly the same as the model in memory.

    Raises:
        NotQuantizable: with the reason for each selection tried.
    """
    del options
    loaded = _write_quantized(source, path)
    return ExportedFile(loaded, compare_layers(source.model, loaded))


def _write_quantized(source: ExportSource, path: Path) -> Any:
    sample, reasons = source.required_sample, []
    for name, make_filter in SELECTIONS.items():
        # Loaded again for each selection, since Keras cannot quantize a layer twice.
        model = source.load_copy(path.parent)
        selected = [layer for layer in layers_inside(model) if make_filter(model)(layer)]
        if not selected:
            raise NotQuantizable(
                "the model has no layer that can be quantized (Dense, EinsumDense, Embedding)"
            )
        _quantize(model, selected)
        expected = Predictor(model)(sample)
        save_model(model, path, source.features)
        try:
            loaded = load_model(path, path.parent)
        except (ValueError, TypeError, KeyError) as error:
            reasons.append(f"{name}: the saved file does not load: {plain_message(error)}")
            continue
        difference = float(np.abs(Predictor(loaded)(sample) - expected).max())
        if difference == 0.0:
            return loaded
        reasons.append(f"{name}: after loading, predictions differ by {difference:.3g}")
    raise NotQuantizable("; ".join(reasons))


def _quantize(model: Any, selected: list[Any]) -> None:
    for layer in selected:
        # Keras does not quantize layers that compute in float16; their variables are float32 anyway
        if layer.compute_dtype == "float16":
            layer.dtype_policy = keras.DTypePolicy("float32")
    ids = {id(layer) for layer in selected}
    with warnings.catch_warnings():
        # Keras warns of each layer that it skips; the report lists them
        warnings.simplefilter("ignore", UserWarning)
        model.quantize("int8", filters=lambda layer: id(layer) in ids)


def is_quantizable(layer: Any) -> bool:
    """Return whether Keras can quantize this layer. Models do not count: they only call their layers."""
    # The base class has the method too, but it only raises NotImplementedError.
    has_implementation = type(layer).quantize is not keras.layers.Layer.quantize
    return has_implementation and not isinstance(layer, keras.Model) and bool(layer.weights)


def _outside_attention(model: Any) -> LayerFilter:
    inside = _inside_attention(model)
    return lambda layer: is_quantizable(layer) and id(layer) not in inside


def _direct_children(model: Any) -> LayerFilter:
    """Select layers that belong to a model directly, not to other layers."""
    models = [layer for layer in layers_inside(model) if isinstance(layer, keras.Model)]
    direct = {id(layer) for parent in models for layer in parent.layers}
    return lambda layer: is_quantizable(layer) and id(layer) in direct


SELECTIONS: dict[str, Callable[[Any], LayerFilter]] = {
    "all layers outside attention": _outside_attention,
    "direct layers of the model": _direct_children,
}
"""Selections of layers by their names in error messages, the largest first."""


def _inside_attention(model: Any) -> set[int]:
    """Return the ids for the layers that the model's attention layers contain."""
    kinds = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
    attentions = [layer for layer in layers_inside(model) if isinstance(layer, kinds)]
    return {id(part) for layer in attentions for part in layers_inside(layer, include_self=False)}


def compare_layers(original: Any, quantized: Any) -> ComparedLayers:
    """Return the quantized layers with their error, and the skipped layers with the reason.

    The relative error of a quantized layer is ‖W − Ŵ‖ / ‖W‖ over its kernel or embedding table.
    """
    inside = _inside_attention(quantized)
    models = models_by_layer(quantized)
    errors: list[LayerError] = []
    skipped: list[SkippedLayer] = []
    for before, after in zip(layers_inside(original), layers_inside(quantized), strict=True):
        if keras_private.has_layers(after) or not after.weights:
            continue
        # The members of an ensemble have layers of the same names.
        name = "/".join([*models.get(id(after), ()), after.path or after.name])
        kind = type(after).__name__
        if keras_private.is_quantized(after):
            exact = _table(before)
            # The lower bound is for kernels of zeros.
            norm = max(float(np.linalg.norm(exact)), 1e-30)
            error = float(np.linalg.norm(exact - _dequantized(after))) / norm
            errors.append(LayerError(layer=name, kind=kind, relative_error=error))
        elif has_kernel(after):
            reason = _reason_for_skipping(after, id(after) in inside)
            skipped.append(SkippedLayer(layer=name, kind=kind, reason=reason))
    return ComparedLayers(tuple(errors), tuple(skipped))


def models_by_layer(model: Any, names: tuple[str, ...] = ()) -> dict[int, tuple[str, ...]]:
    """Return which models inside `model` contain a layer, by the layer's id."""
    models: dict[int, tuple[str, ...]] = {}
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            models |= models_by_layer(layer, (*names, layer.name))
        else:
            models |= {id(part): names for part in layers_inside(layer)}
    return models


def has_kernel(layer: Any) -> bool:
    """Return whether the layer has a matrix or table: more than biases, scales and statistics."""
    return any(len(variable.shape) >= 2 for variable in layer.weights)


def _reason_for_skipping(layer: Any, in_attention: bool) -> str:
    if in_attention:
        return "part of an attention layer, which could not be loaded"
    if not is_quantizable(layer):
        return f"{type(layer).__name__} has no int8 implementation"
    return "could not be loaded"


def _table(layer: Any) -> Array:
    return np.asarray(keras_private.stored_table(layer), np.float64)


def _dequantized(layer: Any) -> Array:
    if keras_private.has_embeddings(layer):
        return _table(layer) / np.asarray(layer.embeddings_scale, np.float64)[:, None]
    scale = layer.kernel_scale
    # The scale of an EinsumDense has the shape of its output, not one that divides the kernel.
    if isinstance(layer, keras.layers.EinsumDense):
        scale = keras_private.scale_of_einsum(layer, scale)
    return _table(layer) / np.asarray(scale, np.float64)
