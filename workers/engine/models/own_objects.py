"""Finds the classes and functions of a user's code that a model file names. Call it only in a sandbox.

`own_code` builds models with the one version of code of a task. This module loads files of versions, each
with the code of its own version, also while another one is in use.

Files of code are read first, and only those that define a wanted name are imported: a script beside them
would otherwise run.
"""

import ast
import contextlib
import importlib
import importlib.util
import json
import re
import sys
import traceback
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import keras
from keras.src.saving import object_registration

from workers.engine.errors import EngineError

SHOWN_FRAMES = 3
"""Calls of the user's code that a message about an error names."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_active: list[Path] = []
"""The folders of code whose objects are found now, the innermost last."""


class CodeFailed(EngineError):
    """Code of users cannot be used; the message names the error and its lines."""

    code = "code_failed"


class Wanted(NamedTuple):
    """An object that a file names: the module of its class, its name there, and its name in the file."""

    module: str
    name: str
    registered: str


@contextlib.contextmanager
def own_objects(folder: Path, *files: Path) -> Iterator[None]:
    """Let Keras find the objects of the code in `folder` that these model files name.

    Inside the block, imports find the modules of the code, and not those of code of an outer block. After it,
    neither its modules nor its registered objects are left: two versions of one model have the same names.

    Raises:
        CodeFailed: a module of the code cannot be imported.
    """
    modules, registered = dict(sys.modules), dict(object_registration.GLOBAL_CUSTOM_OBJECTS)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        _forget_modules(_active)
        _active.append(folder)
        wanted = {each for file in files for each in wanted_objects(_config_of(file))}
        try:
            objects = _objects(folder, wanted)
        # Code of users may raise anything.
        except (Exception, SystemExit) as error:
            raise CodeFailed(f"its code cannot be imported: {cause_of(error)}") from error
        with keras.saving.custom_object_scope(objects):
            yield
    finally:
        sys.path.remove(str(folder))
        _active.remove(folder)
        _forget_modules([folder])
        sys.modules.update({name: module for name, module in modules.items() if name not in sys.modules})
        object_registration.GLOBAL_CUSTOM_OBJECTS.clear()
        object_registration.GLOBAL_CUSTOM_OBJECTS.update(registered)


def is_active() -> bool:
    """Return whether objects of a user's code are found now: then this process runs in a sandbox."""
    return bool(_active)


def wanted_objects(config: Any) -> set[Wanted]:
    """Return the objects that a model's config names, apart from those of Keras."""
    found, todo = set(), [config]
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
        if isinstance(name, str) and not str(module).startswith("keras"):
            known = registered if isinstance(registered, str) else name
            found.add(Wanted(module if isinstance(module, str) else "", name.rpartition(">")[2], known))
    return found


def cause_of(error: BaseException) -> str:
    """Return an error in one line, with the last calls in the code in use; its text alone without code."""
    folders = tuple(_active)
    if not folders:
        return str(error)[:500]
    frames = [
        (frame, _inside(folders, frame.filename)) for frame in traceback.extract_tb(error.__traceback__)
    ]
    shown = [f"{place}:{frame.lineno}" for frame, place in frames if place][-SHOWN_FRAMES:]
    # Keras repeats the config of each object around the one that failed.
    text = _COLOUR.sub("", str(error).rpartition("Exception encountered: ")[2])
    message = f"{type(error).__name__}: {' '.join(text.split())[:500]}"
    for folder in folders:
        message = message.replace(f"{folder}/", "")
    return f"{message} ({', '.join(shown)})" if shown else message


def _config_of(file: Path) -> Any:
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("config.json"))


def _objects(folder: Path, wanted: set[Wanted]) -> dict[str, Any]:
    """Import the modules that define the wanted objects; return the objects by the names in the files."""
    places = _definitions(folder) if wanted else {}
    objects: dict[str, Any] = {}
    for each in sorted(wanted):
        modules = places.get(each.name)
        if not modules:
            continue
        dotted = each.module if each.module in modules else min(modules)
        found = getattr(_module(dotted, modules[dotted], folder), each.name, None)
        if found is not None:
            objects[each.registered] = objects[each.name] = found
    return objects


def _definitions(folder: Path) -> Mapping[str, dict[str, Path]]:
    """Return the modules that define each name, with their files."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        # It may be of another version of Python; a module that is needed fails when it is imported.
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found.setdefault(node.name, {})[dotted] = path
    return found


def _module(dotted: str, path: Path, folder: Path) -> ModuleType:
    loaded = sys.modules.get(dotted)
    if loaded is None or _is_inside(loaded, folder):
        return importlib.import_module(dotted)
    # A file of the code has the name of a module that is imported already.
    spec = importlib.util.spec_from_file_location(f"own_{dotted.replace('.', '_')}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _forget_modules(folders: list[Path]) -> None:
    for name, module in list(sys.modules.items()):
        if any(_is_inside(module, folder) for folder in folders):
            del sys.modules[name]


def _is_inside(module: ModuleType, folder: Path) -> bool:
    return bool(_inside((folder,), getattr(module, "__file__", None) or ""))


def _inside(folders: tuple[Path, ...], name: str) -> str:
    """Return the path of a file in the innermost of these folders; empty if it is in none."""
    path = Path(name)
    return next((str(path.relative_to(each)) for each in reversed(folders) if path.is_relative_to(each)), "")
