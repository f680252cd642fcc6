"""Names a model's outputs, in the same order as `model.outputs`."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import keras

from jobs.spec.policies import OUTPUT_LAYERS
from workers.engine.models.graph import graph_of
from workers.engine.models.keras_private import operation_of, to_snake_case

ONLY = "output"
"""Name of the only output of a model whose layer has no chosen name."""


def output_names(model: Any) -> list[str]:
    """Return a different name for each output.

    It is the output's key if the model returns a dictionary (nested keys are joined by dots), or
    its layer's name. A model's only output is called `output` if its layer's name was chosen
    by Keras, which counts layers, or by our templates.
    """
    graph = graph_of(model)
    names = [_name(path, operation_of(output)) for path, output in keras.tree.flatten_with_path(graph.output)]
    layer = operation_of(graph.outputs[0])
    if names == [layer.name] and (layer.name in OUTPUT_LAYERS or _is_automatic(layer)):
        return [ONLY]
    return _unique(names)


def _name(path: Sequence[str | int], layer: Any) -> str:
    if path and all(isinstance(part, str) for part in path):
        return ".".join(map(str, path))
    return str(layer.name)


def _is_automatic(layer: Any) -> bool:
    """Return whether Keras chose the layer's name: its class, with a number from the second one on."""
    return re.fullmatch(rf"{to_snake_case(type(layer).__name__)}(_\d+)?", layer.name) is not None


def _unique(names: list[str]) -> list[str]:
    """Number the names that several outputs share: one layer may return several."""
    once = {name for name in names if names.count(name) == 1}
    unique: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count())
        taken = once.union(unique)
        unique.append(name if name in once else next(free for free in numbered if free not in taken))
    return unique
