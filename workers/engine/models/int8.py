"""Int8 weights with a scale for each output, activations scaled by row, by Keras' own quantization.

What was measured on Keras 3.15: a model compiled when it is quantized keeps its float optimizer slots;
sub-layers of an attention layer, quantized, do not load again; convolutions have no int8 form; layers
that compute in float16 are refused.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from workers.engine.data.table import Array
from workers.engine.errors import EngineError
from workers.engine.models.files import load_model, save_model
from workers.engine.models.predict import Predictor

Wanted = Callable[[Any], bool]


class NotQuantizable(EngineError):
    """No form of this model in int8 gives, saved and loaded, what it gives in memory."""

    code = "not_quantizable"


def quantize_file(original: Path, path: Path, x: Array) -> Any:
    """Write the model at `original` to `path` in int8 and return it as it loads from there.

    Each choice of layers is tried until the loaded file predicts exactly what the model in memory did.

    Args:
        original: a `.keras` file.
        path: where the quantized one goes.
        x: rows to compare predictions on.

    Raises:
        NotQuantizable: with the reason for each choice tried.
    """
    reasons = []
    for choice, wanted_in in CHOICES.items():
        model = load_model(original, path.parent)
        chosen = [layer for layer in model._flatten_layers() if wanted_in(model)(layer)]
        if not chosen:
            raise NotQuantizable("the model has no layer with an int8 form (Dense, EinsumDense, Embedding)")
        _quantize(model, chosen)
        in_memory = Predictor(model)(x)
        save_model(model, path)
        try:
            loaded = load_model(path, path.parent)
        except (ValueError, TypeError, KeyError) as error:
            reasons.append(f"{choice}: it does not load again: {str(error).splitlines()[0]}")
            continue
        difference = float(np.abs(Predictor(loaded)(x) - in_memory).max())
        if difference == 0.0:
            return loaded
        reasons.append(f"{choice}: loaded again it differs by {difference:.3g}")
    raise NotQuantizable("; ".join(reasons))


def _quantize(model: Any, chosen: list[Any]) -> None:
    for layer in chosen:
        if layer.compute_dtype == "float16":  # refused by Keras; its variables are float32 anyway
            layer.dtype_policy = keras.DTypePolicy("float32")
    names = {id(layer) for layer in chosen}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one a skipped layer; the report names them
        model.quantize("int8", filters=lambda layer: id(layer) in names)


def has_int8_form(layer: Any) -> bool:
    """Say whether Keras can quantize this layer itself (models only pass it on)."""
    own = type(layer).quantize is not keras.layers.Layer.quantize
    return own and not isinstance(layer, keras.Model) and bool(layer.weights)


def _outside_attention(model: Any) -> Wanted:
    inside = {id(part) for layer in _attentions(model) for part in layer._flatten_layers(include_self=False)}
    return lambda layer: has_int8_form(layer) and id(layer) not in inside


def _held_by_models(model: Any) -> Wanted:
    """Choose layers that stand in a model directly, no parts of other layers."""
    models = [layer for layer in model._flatten_layers() if isinstance(layer, keras.Model)]
    direct = {id(layer) for holder in models for layer in holder.layers}
    return lambda layer: has_int8_form(layer) and id(layer) in direct


CHOICES: dict[str, Callable[[Any], Wanted]] = {
    "all layers outside attention": _outside_attention,
    "layers held by the model itself": _held_by_models,
}


def _attentions(model: Any) -> Iterator[Any]:
    kinds = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
    return (layer for layer in model._flatten_layers() if isinstance(layer, kinds))


def compare_layers(original: Any, quantized: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what became of each layer with weights: those quantized, and those skipped with the reason.

    The error of a quantized layer is ‖W − Ŵ‖ / ‖W‖ over its kernel or table.
    """
    inside = {
        id(part) for layer in _attentions(quantized) for part in layer._flatten_layers(include_self=False)
    }
    done, skipped = [], []
    for before, after in zip(original._flatten_layers(), quantized._flatten_layers(), strict=True):
        if not after._layers and after.weights:
            entry = {"layer": after.path or after.name, "kind": type(after).__name__}
            if getattr(after, "_is_quantized", False):
                done.append({**entry, "relative_error": _relative_error(before, after)})
            elif has_kernel(after):
                skipped.append({**entry, "reason": _reason(after, id(after) in inside)})
    return done, skipped


def has_kernel(layer: Any) -> bool:
    """Say whether the layer has a table or matrix: more than biases, scales and statistics."""
    return any(len(variable.shape) >= 2 for variable in layer.weights)


def _reason(layer: Any, in_attention: bool) -> str:
    if in_attention:
        return "part of an attention layer, which would not load again"
    if not has_int8_form(layer):
        return f"{type(layer).__name__} has no int8 form"
    return "would not load again"


def _relative_error(before: Any, after: Any) -> float:
    exact = _table(before)
    error = np.linalg.norm(exact - _dequantized(after)) / max(float(np.linalg.norm(exact)), 1e-30)
    return float(error)


def _table(layer: Any) -> Array:
    return np.asarray(layer._embeddings if hasattr(layer, "_embeddings") else layer._kernel, np.float64)


def _dequantized(layer: Any) -> Array:
    if hasattr(layer, "_embeddings"):
        return _table(layer) / np.asarray(layer.embeddings_scale, np.float64)[:, None]
    scale = layer.kernel_scale
    if isinstance(layer, keras.layers.EinsumDense):  # keeps its scale in the output's shape
        scale = layer._adjust_scale_for_dequant(scale)
    return _table(layer) / np.asarray(scale, np.float64)
