"""Finds the classes and functions in user code that a model file names. Call it only in a sandbox.

Code files are read first, and only those that define a wanted name are imported: a script beside them
would otherwise run.
"""

import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import keras

from workers.engine.models import keras_private
from workers.engine.models.keras_origin import definition_of, is_keras_module, is_of_keras
from workers.engine.models.own_code.definitions import definitions
from workers.engine.models.own_code.imports import imported
from workers.engine.models.own_code.in_use import is_active


class Reference(NamedTuple):
    """An object that a file names: its class's module, its name there, and its name in the file."""

    module: str
    name: str
    registered: str


@contextmanager
def objects_for(path: Path) -> Iterator[None]:
    """Let Keras load a `.keras` file with the objects from the code in use, if there is some.

    Raises:
        CodeImportFailure: a module in the code cannot be imported.
    """
    if not is_active():
        yield
        return
    with objects_in(_config_of(path)):
        yield


@contextmanager
def objects_in(config: Any) -> Iterator[None]:
    """Let Keras make the object with this config, with the objects from the code in use.

    Raises:
        CodeImportFailure: a module in the code cannot be imported.
    """
    with keras.saving.custom_object_scope(_objects(referenced_objects(config))):
        yield


def _config_of(file: Path) -> Any:
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("config.json"))


def referenced_objects(config: Any) -> set[Reference]:
    """Return the objects that a model's config names, apart from Keras' own."""
    references, todo = set(), [config]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo.extend(part)
        if not isinstance(part, dict):
            continue
        todo.extend(part.values())
        module, name, registered = (part.get(key) for key in ("module", "class_name", "registered_name"))
        if name == "function":
            # Its name is in place of its config.
            name = registered = part.get("config")
        if isinstance(name, str) and not is_keras_module(module):
            saved_name = registered if isinstance(registered, str) else name
            references.add(
                Reference(module if isinstance(module, str) else "", name.rpartition(">")[2], saved_name)
            )
    return references


def _objects(references: set[Reference]) -> dict[str, Any]:
    """Import the files that define the wanted objects; return these by the names in the model's file."""
    defining = definitions() if references else {}
    by_file: dict[str, list[Reference]] = {}
    for reference in sorted(references):
        if files := defining.get(reference.name):
            by_file.setdefault(_file_of(reference.module, files), []).append(reference)
    objects: dict[str, Any] = {}
    for file, parts in by_file.items():
        module = imported(file, {reference.name for reference in parts})
        for reference in parts:
            # The file may have failed before its definition, when something else of it was needed.
            if (definition := getattr(module, reference.name, None)) is not None:
                objects[reference.registered] = objects[reference.name] = definition
    return objects


def _file_of(module: str, files: Sequence[str]) -> str:
    """Return a module's file; the first file if none has its name."""
    named = [file for file in files if f".{_dotted(file)}".endswith(f".{module}")]
    return min(named, key=len) if named else files[0]


def _dotted(file: str) -> str:
    parts = PurePosixPath(file).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def custom_objects_of(model: Any) -> Sequence[str]:
    """Return which layers, losses and metrics in a model are not from Keras, by name."""
    parts = keras_private.layers_inside(model, include_self=False)
    for metrics in keras_private.metrics_given(model):
        parts += [metric for metric in metrics or () if not isinstance(metric, str)]
    if (loss := getattr(model, "loss", None)) is not None and not isinstance(loss, str | list | dict):
        parts.append(loss)
    names: dict[str, None] = {}
    for part in parts:
        if not is_of_keras(part):
            names[definition_of(part).__name__] = None
    return tuple(names)
