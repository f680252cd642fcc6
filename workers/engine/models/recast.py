"""Loads a stored model with other dtype policies for its layers.

A built layer cannot change the type of its weights. So the policies are replaced in the configuration inside
the file, and Keras converts the weights while it loads them.
"""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras

from jobs.spec.exports import STORED
from workers.engine.models import keras_private
from workers.engine.models.files import load_model
from workers.engine.models.graph import graph_of

Place = tuple[str, ...]
"""A layer's name after the names of the models inside the model that contain it."""
CONFIG = "config.json"


def load_recast(path: Path, folder: Path, policy_at: Callable[[Place], str | None]) -> Any:
    """Load a stored model with other dtype policies.

    Args:
        path: its file.
        folder: for temporary files.
        policy_at: returns the policy for the layer at a place, or None for the stored one. Layers inside a
            layer, such as those of Bidirectional, get the same.

    Raises:
        ValueError, TypeError, OSError: see `load_model`.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="recast-") as place:
        changed = Path(place) / STORED.file_name()
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(changed, "w") as target:
            for entry in source.infolist():
                if entry.filename == CONFIG:
                    config = json.loads(source.read(entry))
                    _change_model(config, (), policy_at)
                    target.writestr(entry, json.dumps(config))
                else:
                    with source.open(entry) as reader, target.open(entry, "w", force_zip64=True) as writer:
                        shutil.copyfileobj(reader, writer)
        return load_model(changed, Path(place))


def _change_model(node: dict[str, Any], place: Place, policy_at: Callable[[Place], str | None]) -> None:
    for layer in node["config"].get("layers", ()):
        name = layer["config"].get("name", "")
        if "layers" in layer["config"]:
            _change_model(layer, (*place, name), policy_at)
        elif (policy := policy_at((*place, name))) is not None:
            _set_policy(layer["config"], policy)


def _set_policy(config: Any, policy: str) -> None:
    """Set the policy in a layer's configuration, and in those of the layers inside it."""
    if isinstance(config, list):
        for part in config:
            _set_policy(part, policy)
    if not isinstance(config, dict):
        return
    # Initializers and tensors have a type too, but cannot be trained.
    if "trainable" in config and _is_plain(config.get("dtype")):
        config["dtype"] = policy
    for part in config.values():
        _set_policy(part, policy)


def _is_plain(dtype: Any) -> bool:
    """Return whether a stored policy is one format for all; that of a quantized layer is not."""
    return isinstance(dtype, str) or (isinstance(dtype, dict) and dtype.get("class_name") == "DTypePolicy")


def placed_layers(model: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the layers of a model with their places; a model inside it is replaced by its layers."""
    for layer in model.layers:
        if isinstance(layer, keras.Model) and layer.layers:
            yield from placed_layers(layer, (*place, layer.name))
        else:
            yield (*place, layer.name), layer


def layers_at_ends(model: Any) -> dict[int, str]:
    """Return the layers that see raw inputs or make outputs, by id, with the reason.

    In 16 bits raw inputs may overflow, numbers of words above 2048 become others, and probabilities are
    rounded.
    """
    ends: dict[int, str] = {}
    for part in _models_in(model):
        graph = graph_of(part)
        calls = [call for group in keras_private.calls_by_depth(graph) for call in group]
        ends |= _takers_of_inputs(calls)
        for tensor in keras.tree.flatten(getattr(graph, "outputs", None) or ()):
            ends[id(keras_private.operation_of(tensor))] = "makes the outputs"
    return ends


def _takers_of_inputs(calls: list[Any]) -> dict[int, str]:
    """Return the layers without learned weights between the inputs and the first layer that has some."""
    takers: dict[int, str] = {}
    count = -1
    while count < len(takers):
        count = len(takers)
        for call in calls:
            sources = [id(keras_private.operation_of(tensor)) for tensor in call.input_tensors]
            if not _learns(call.operation) and all(source in takers for source in sources):
                takers[id(call.operation)] = "takes raw inputs"
    return takers


def _models_in(model: Any) -> list[Any]:
    return [part for part in keras_private.layers_inside(model) if isinstance(part, keras.Model)]


def _learns(layer: Any) -> bool:
    """Return whether a layer has weights that are learned, other than statistics of the input."""
    return bool(getattr(layer, "weights", ())) and not isinstance(layer, keras.layers.Normalization)
