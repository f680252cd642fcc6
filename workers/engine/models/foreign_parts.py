"""Explains why a part of a foreign model file is not loaded, with the remedy."""

from typing import Any

from jobs.spec.exports import STORED
from workers.engine.models.keras_origin import is_keras_module

WITH_CODE = (
    "upload the file again together with the version of your code that has it (page Code; the field code of "
    "the upload), which is executed in a sandbox"
)
NAMED_FUNCTION = (
    "Keras saves such functions but cannot load them. Use an activation or operations of Keras, or define "
    "the function with def in your code, save the model again, and upload it together with the code"
)
_NEED_TENSORFLOW = frozenset(
    {"TextVectorization", "StringLookup", "IntegerLookup", "TFSMLayer", "MelSpectrogram", "FeatureSpace"}
)
_OF_OTHERS = {
    "TFSMLayer": "a SavedModel, a program of TensorFlow, which is not installed: save the original model "
    f"by model.save({STORED.file_name()!r}) instead",
    "TorchModuleWrapper": "a module of PyTorch, which is not installed here: build its layers in Keras, and "
    "copy the weights",
    "JaxLayer": f"a function of JAX: {WITH_CODE}",
    "FlaxLayer": f"a module of Flax: {WITH_CODE}",
}


def why_refused(entry: dict[str, Any]) -> str:
    """Return why an object is not among the accepted ones, with its name and the remedy.

    Args:
        entry: the object in the config, as Keras writes it.
    """
    module, kind, registered = entry.get("module"), entry["class_name"], entry.get("registered_name")
    if kind in ("function", "__lambda__"):
        return _of_function(entry)
    layer = _layer_of(entry, kind)
    if kind == "Lambda":
        return (
            f"{layer} (keras.layers.Lambda) is Python code in the file, which is not executed: {WITH_CODE}, "
            "or replace the Lambda by operations of keras.ops, or by a class of your code"
        )
    if kind in _OF_OTHERS:
        return f"{layer} ({module}.{kind}) holds {_OF_OTHERS[kind]}"
    if kind in _NEED_TENSORFLOW:
        return (
            f"{layer} ({module}.{kind}) needs TensorFlow, which is not installed here: save the model "
            "without it, from the layer behind it on, and send numbers instead of texts"
        )
    if not is_keras_module(module):
        name = registered if isinstance(registered, str) and registered else kind
        origin = f" in the module {module}" if isinstance(module, str) and module else ""
        return f"{layer} is of the class {name}{origin}, which is not of Keras: {WITH_CODE}"
    return (
        f"{layer} ({module}.{kind}) is not among the layers and operations that are accepted from other "
        f"sources: {WITH_CODE}"
    )


def _layer_of(entry: dict[str, Any], kind: str) -> str:
    config = entry.get("config")
    name = config.get("name") if isinstance(config, dict) else None
    return f"its layer {name!r}" if isinstance(name, str) else f"its part {kind}"


def _of_function(entry: dict[str, Any]) -> str:
    module, name = entry.get("module"), entry.get("config")
    if entry["class_name"] == "__lambda__" or not isinstance(name, str):
        return f"it has a lambda, Python code in the file, which is not executed: {WITH_CODE}"
    origin = f" ({module}.function)" if isinstance(module, str) and module else ""
    return f"it uses the function {name!r}{origin}, which is not of Keras: {WITH_CODE}"
