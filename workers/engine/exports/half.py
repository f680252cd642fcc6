"""Casts models to 16 bits: the layers keep their weights and compute in float16 or bfloat16.

Layers that see raw inputs or make the outputs stay as they are, so that the signature does too. So do layers
with weights that the format cannot hold, and those whose class sets the types itself.
"""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from jobs.messages.reports.quantization import LayerError, SkippedLayer
from jobs.spec.base import Frozen
from workers.engine.arrays import Array
from workers.engine.errors import EngineError
from workers.engine.exports.int8 import has_kernel, models_by_layer
from workers.engine.exports.source import ComparedLayers, ExportedFile, ExportSource
from workers.engine.models import keras_private
from workers.engine.models.files import load_model, save_model
from workers.engine.models.keras_private import layers_inside
from workers.engine.models.precision import needs_gpu_in_float16
from workers.engine.models.predict import Predictor
from workers.engine.models.recast import Place, layers_at_ends, load_recast, placed_layers


class NotCastable(EngineError):
    """No layer of this model can be cast, or the cast model cannot be stored."""

    code = "not_castable"


def write_float16(source: ExportSource, path: Path, options: Frozen | None) -> ExportedFile:
    """Cast a model to float16, write it to `path` and return it as loaded from there.

    Raises:
        NotCastable: no layer was cast, or the file predicts other values than the model in memory.
    """
    del options
    return _cast("float16", source, path)


def write_bfloat16(source: ExportSource, path: Path, options: Frozen | None) -> ExportedFile:
    """Cast a model to bfloat16; see `write_float16`."""
    del options
    return _cast("bfloat16", source, path)


def _cast(name: str, source: ExportSource, path: Path) -> ExportedFile:
    if source.file is None:
        raise ValueError("the model has no file from which a copy could be loaded; save it first")
    kept = layers_kept(source.model, name)

    def policy_at(place: Place) -> str | None:
        return None if place in kept else name

    model = load_recast(source.file, path.parent, policy_at)
    layers = compare_layers(source.model, model, kept)
    if not layers.quantized:
        reasons = "; ".join(f"{layer.layer}: {layer.reason}" for layer in layers.skipped[:10])
        raise NotCastable(f"no layer of this model can be cast to {name}; {reasons or 'it has no weights'}")
    sample = source.required_sample
    expected = Predictor(model)(sample)
    save_model(model, path, source.features)
    loaded = load_model(path, path.parent)
    difference = np.abs(Predictor(loaded)(sample) - expected).max()
    # NaN is reported with the metrics: both predict it.
    if difference > 0:
        raise NotCastable(f"after loading, predictions differ by {difference:.3g}")
    return ExportedFile(loaded, layers)


def layers_kept(model: Any, name: str) -> dict[Place, str]:
    """Return the layers that keep their types, with the reason."""
    limit = float(ml_dtypes.finfo(name).max)
    ends = layers_at_ends(model)
    kept = {}
    for place, layer in placed_layers(model):
        if id(layer) in ends:
            kept[place] = f"{ends[id(layer)]}, which stay in their type"
        elif name == "float16" and needs_gpu_in_float16(layer):
            kept[place] = "computes attention, which CPUs cannot do in float16"
        elif (largest := _largest_weight(layer)) > limit:
            kept[place] = f"has weights up to {largest:.3g}, beyond the range of {name}"
    return kept


def _largest_weight(layer: Any) -> float:
    values = [np.abs(_values(v)).max(initial=0.0) for v in layer.weights if _is_float(v)]
    return float(max(values, default=0.0))


def _is_float(variable: Any) -> bool:
    return "float" in str(variable.dtype)


def _values(variable: Any) -> Array:
    return np.asarray(variable.value).astype(np.float64)


def compare_layers(original: Any, cast: Any, kept: dict[Place, str]) -> ComparedLayers:
    """Return the layers that were cast with the error of their weights, and the others with the reason."""
    models = models_by_layer(cast)
    reasons = {
        id(part): kept[place]
        for place, layer in placed_layers(original)
        for part in layers_inside(layer)
        if place in kept
    }
    errors: list[LayerError] = []
    skipped: list[SkippedLayer] = []
    for before, after in zip(layers_inside(original), layers_inside(cast), strict=True):
        pairs = [(b, a) for b, a in zip(before.weights, after.weights, strict=True) if _is_float(b)]
        if keras_private.has_layers(after) or not pairs:
            continue
        names = models.get(id(after), ())
        name, kind = "/".join([*names, after.path or after.name]), type(after).__name__
        if any(str(b.dtype) != str(a.dtype) for b, a in pairs):
            errors.append(LayerError(layer=name, kind=kind, relative_error=_relative_error(pairs)))
        elif has_kernel(after):
            reason = reasons.get(id(before), "its class sets the types of its weights")
            skipped.append(SkippedLayer(layer=name, kind=kind, reason=reason))
    return ComparedLayers(tuple(errors), tuple(skipped))


def _relative_error(pairs: list[tuple[Any, Any]]) -> float:
    """Return ‖W − Ŵ‖ / ‖W‖ over all weights of a layer."""
    exact = np.concatenate([_values(before).ravel() for before, _ in pairs])
    rounded = np.concatenate([_values(after).ravel() for _, after in pairs])
    # The lower bound is for weights of zeros.
    return float(np.linalg.norm(exact - rounded)) / max(float(np.linalg.norm(exact)), 1e-30)
