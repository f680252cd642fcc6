"""Imports code of users, builds its models, and makes its layers and functions known to Keras.

It executes that code, so only runners in a sandbox may use it.
"""

import ast
import importlib
import importlib.util
import inspect
import json
import sys
import traceback
import zipfile
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from jobs.contracts.code_model import CodeModel
from jobs.contracts.task_parts import OwnCode
from workers.engine.errors import (
    CodeBuildFailure,
    CodeFailure,
    CodeImportFailure,
    EngineError,
    affects_process,
)

MAX_TRACE_LINES = 40


@dataclass
class _Loaded:
    """The version of code that this process has on its path.

    Attributes:
        digest, folder: of the version.
        path: its entries in the path of modules.
        is_active: whether a task uses it now.
        notes: errors of its files that do not prevent their use.
    """

    digest: str
    folder: Path
    path: list[str]
    is_active: bool = False
    notes: list[str] = field(default_factory=list)


_LOADED: list[_Loaded] = []
"""The only element is the newest version. A runner has one; tests have several."""


@contextmanager
def own_objects(code: OwnCode | None, into: Path | None = None) -> Iterator[None]:
    """Let models be built and loaded with the objects of a version of code.

    Args:
        code: None changes nothing.
        into: its files are copied there if the supervisor has not put them into a folder.
    """
    if code is None:
        yield
        return
    loaded = _use(code, into)
    loaded.is_active = True
    try:
        yield
    finally:
        loaded.is_active = False


def _use(code: OwnCode, into: Path | None) -> _Loaded:
    folder = Path(code.folder) if code.folder else _copied(code, into)
    if _LOADED and (_LOADED[0].digest, _LOADED[0].folder) == (code.digest, folder):
        return _LOADED[0]
    if _LOADED:
        _forget(_LOADED.pop())
    _LOADED.append(_Loaded(code.digest, folder, [str(folder)]))
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    return _LOADED[0]


def _copied(code: OwnCode, into: Path | None) -> Path:
    if into is None:
        raise ValueError("the files of the code are in no folder")
    folder = into / f"code-{code.digest[:16]}"
    for file in code.files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(file.place).read_bytes())
    return folder


def _forget(old: _Loaded) -> None:
    """Remove a version from the path and from the imported modules."""
    sys.path[:] = [entry for entry in sys.path if entry not in old.path]
    for name, module in list(sys.modules.items()):
        if _is_inside(module, old.folder):
            del sys.modules[name]


def _is_inside(module: Any, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(folder)


def active() -> _Loaded | None:
    """Return the version of code of the present task; None without one."""
    return _LOADED[0] if _LOADED and _LOADED[0].is_active else None


def _folder() -> Path:
    if (loaded := active()) is None:
        raise RuntimeError("the task has no code")
    return loaded.folder


@contextmanager
def calling(kind: type[CodeFailure], what: str) -> Iterator[None]:
    """Raise every error of the code that is called inside as a `CodeFailure`.

    Args:
        kind: of the error.
        what: was done, for the message: "building the model".

    Raises:
        CodeFailure: the code raised an error, or ended the process.
        Exception: an error that affects the whole process.
    """
    try:
        yield
    except EngineError:
        raise
    except SystemExit as error:
        raise kind(f"{what} failed: the code called sys.exit({error.code!r})", trace_of(error)) from error
    # Code of users may raise anything.
    except Exception as error:
        if affects_process(error):
            raise
        raise kind(f"{what} failed: {_described(error)}", trace_of(error)) from error


def _described(error: Exception) -> str:
    first = str(error).strip().split("\n", 1)[0][:500]
    frames = _own_frames(error)
    where = f" ({_relative(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({_relative(error.filename)}, line {error.lineno})"
        first = error.msg
    return f"{type(error).__name__}: {first}{where}" if first else f"{type(error).__name__}{where}"


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the lines of a traceback that are in the code's own files."""
    folder = _folder()
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]


def _relative(file: str) -> str:
    path, folder = Path(file), _folder()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name


def trace_of(error: BaseException) -> str:
    """Return the lines of a traceback in the code's own files, and the error."""
    frames = _own_frames(error)
    for frame in frames:
        frame.filename = _relative(frame.filename)
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    text = "".join(lines).replace(str(_folder()), "").splitlines()[-MAX_TRACE_LINES:]
    return "\n".join(["Traceback of the code (most recent call last):", *text])


def entry_of(model: CodeModel) -> Any:
    """Return an instance of the HyperModel class that a model names, or one of its function `build_model`.

    Raises:
        CodeImportFailure: the code cannot be imported, or has no such entry.
        CodeBuildFailure: the constructor of the class refuses its arguments.
    """
    # Three seconds, which other tasks do not need.
    import keras_tuner

    found = getattr(imported(_file_of(model), {model.name}), model.name, None)
    if inspect.isclass(found) and issubclass(found, keras_tuner.HyperModel):
        with calling(CodeBuildFailure, f"{model.name}({', '.join(model.args)})"):
            return found(**model.args)
    if callable(found) and not inspect.isclass(found):
        return _Function(found)
    raise CodeImportFailure(f"{model.entry} is neither a function nor a HyperModel class")


class _Function:
    """Gives a function `build_model` the methods of a HyperModel."""

    def __init__(self, function: Any) -> None:
        self.build = function


def has_own_fit(hypermodel: Any) -> bool:
    """Return whether a class trains its models by a method `fit` of its own."""
    import keras_tuner

    fit = getattr(type(hypermodel), "fit", None)
    return fit is not None and fit is not keras_tuner.HyperModel.fit


def _file_of(model: CodeModel) -> str:
    """Return the path of the file that defines the entry."""
    files = [model.path] if model.path else [str(path) for path in _python_files()]
    defining = [file for file in files if model.name in _defined(_folder() / file)]
    if not defining:
        raise CodeImportFailure(f"no file of the code defines {model.name}")
    return defining[0]


def _python_files() -> list[Path]:
    folder = _folder()
    return sorted(path.relative_to(folder) for path in folder.rglob("*.py"))


def _defined(file: Path) -> set[str]:
    """Return the names of the functions and classes that a file defines; none if it cannot be parsed."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return set()
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def imported(file: str, needed: AbstractSet[str] = frozenset()) -> ModuleType:
    """Return the module of a file of the code, imported as `python file` would find its neighbours.

    Args:
        file: its path in the version.
        needed: if one of these names is defined, a later error at the level of the module is only noted: a
            pasted guide ends with a search of its own, on data that are not there.

    Raises:
        CodeImportFailure: its execution fails.
    """
    loaded, path = _LOADED[0], _folder() / file
    for known in sys.modules.values():
        if getattr(known, "__file__", None) == str(path):
            return known
    neighbours = str(path.parent)
    if neighbours not in loaded.path:
        loaded.path.append(neighbours)
        sys.path.insert(1, neighbours)
    module: list[ModuleType] = []
    try:
        with calling(CodeImportFailure, f"importing {file}"), _without_searches(path):
            _execute(file, path, module)
    except CodeImportFailure as failure:
        if not module or needed.isdisjoint(vars(module[0])):
            raise
        sys.modules[module[0].__name__] = module[0]
        loaded.notes.append(f"{failure}: the lines after it are not executed")
    return module[0]


def _execute(file: str, path: Path, into: list[ModuleType]) -> None:
    """Execute a file as a module; `into` gets the module first."""
    parts = Path(file).with_suffix("").parts
    name = ".".join(parts)
    if not all(part.isidentifier() for part in parts) or (parts[0] in sys.modules and not _is_own(parts[0])):
        # A module of another package has this name already, or no module can have it.
        name = f"own_code_{'_'.join(parts)}"
    elif len(parts) > 1:
        # For relative imports.
        importlib.import_module(".".join(parts[:-1]))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    into.append(module)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _is_own(name: str) -> bool:
    """Return whether an imported module or package is part of the code."""
    module, folder = sys.modules[name], _folder()
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(isinstance(place, str) and Path(place).is_relative_to(folder) for place in places)


class _SearchOfCode(Exception):
    """The code has called a search of KerasTuner."""


@contextmanager
def _without_searches(path: Path) -> Iterator[None]:
    """Refuse searches of KerasTuner while a file is imported: the experiment is the search."""
    if b"keras_tuner" not in path.read_bytes():
        yield
        return
    import keras_tuner

    before = keras_tuner.Tuner.search

    def search(*_: Any, **__: Any) -> None:
        raise _SearchOfCode("tuner.search is not executed, since the experiment is the search")

    keras_tuner.Tuner.search = search
    try:
        yield
    finally:
        keras_tuner.Tuner.search = before


def notes() -> Sequence[str]:
    """Return the errors of the imported files after which their other lines were not executed."""
    return tuple(_LOADED[0].notes) if _LOADED else ()


def objects() -> dict[str, Any]:
    """Return the classes and functions that the imported files of the code define, by name."""
    folder, found = _folder(), {}
    for module in list(sys.modules.values()):
        if _is_inside(module, folder):
            for name, value in vars(module).items():
                is_own = getattr(value, "__module__", None) == module.__name__
                if is_own and (inspect.isclass(value) or inspect.isfunction(value)):
                    found[name] = value
    return found


@contextmanager
def objects_for(path: Path) -> Iterator[None]:
    """Let Keras load a `.keras` file with the objects of the present task's code, if it has one."""
    if active() is None:
        yield
        return
    wanted = _names_in(path)
    for file in map(str, _python_files()):
        if not wanted.isdisjoint(_defined(_folder() / file)):
            imported(file, wanted)
    with keras.saving.custom_object_scope(objects()):
        yield


def _names_in(path: Path) -> set[str]:
    """Return the names of all classes and functions in the config of a model's file."""
    with zipfile.ZipFile(path) as archive:
        todo: list[Any] = [json.loads(archive.read("config.json"))]
    names: set[str] = set()
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo.extend(part)
        elif isinstance(part, dict):
            todo.extend(part.values())
            for key in ("class_name", "registered_name", "config"):
                if isinstance(value := part.get(key), str):
                    names.add(value.rpartition(">")[2])
    return names


def custom_objects_of(model: Any) -> Sequence[str]:
    """Return the names of the layers, losses and metrics of a model that are not of Keras."""
    parts = list(model._flatten_layers(include_self=False))
    compiled = model._compile_metrics
    for metrics in () if compiled is None else (compiled._user_metrics, compiled._user_weighted_metrics):
        parts += [metric for metric in metrics or () if not isinstance(metric, str)]
    if (loss := getattr(model, "loss", None)) is not None and not isinstance(loss, str | list | dict):
        parts.append(loss)
    names: dict[str, None] = {}
    for part in parts:
        kind = part if inspect.isfunction(part) else type(part)
        if not str(kind.__module__).startswith("keras."):
            names[kind.__name__] = None
    return tuple(names)
