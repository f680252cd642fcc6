"""Imports user code, and builds its models.

It executes that code, so only processes in a sandbox may use it. `own_objects` loads model files with it.
"""

import ast
import contextlib
import errno
import importlib
import importlib.util
import inspect
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, Any

import keras

from workers.code_reader.builders import statements_of
from workers.engine.errors import (
    CodeBuildFailure,
    CodeFailure,
    CodeFatalFailure,
    CodeImportFailure,
    EngineError,
    affects_process,
)
from workers.engine.models.code_hints import hint_for
from workers.engine.models.code_models.code_values import thresholds_in
from workers.engine.models.keras_private import object_registration
from workers.model_process.library_messages import plain_message

if TYPE_CHECKING:
    # They take a tenth of a second to import, and model children need neither.
    from jobs.messages.task import OwnCode
    from jobs.spec.sections.code_model import CodeModel

MAX_TRACE_LINES = 40
_UNREACHED = (errno.ENETUNREACH, errno.EHOSTUNREACH)


@dataclass
class _Loaded:
    """A code version.

    Attributes:
        folder: has its files.
        digest: the version's digest.
        path: its entries in the module path.
        modules, registered: its imported modules and the objects that it has registered in Keras, while it is
            not in use.
        notes: errors in its files that do not prevent their use.
        policy: the dtype policy that its files set when they are imported; None if they set none.
    """

    folder: Path
    digest: str = ""
    path: list[str] = field(default_factory=list)
    modules: dict[str, ModuleType] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    policy: Any = None

    def __post_init__(self) -> None:
        self.path.append(str(self.folder))

    def add(self) -> None:
        """Make its modules and registered objects this process' own."""
        sys.path[:0] = self.path
        sys.modules.update(self.modules)
        object_registration.GLOBAL_CUSTOM_OBJECTS.update(self.registered)
        importlib.invalidate_caches()

    def remove(self, before: dict[str, Any]) -> None:
        """Undo `add`, but keep modules that were imported meanwhile.

        Args:
            before: the objects that were registered in Keras before.
        """
        sys.path[:] = [entry for entry in sys.path if entry not in self.path]
        self.modules = {
            name: module for name, module in sys.modules.items() if _is_inside(module, self.folder)
        }
        for name in self.modules:
            del sys.modules[name]
        objects = object_registration.GLOBAL_CUSTOM_OBJECTS
        self.registered = {name: value for name, value in objects.items() if before.get(name) is not value}
        objects.clear()
        objects.update(before)


_IN_USE: list[_Loaded] = []
"""The version that is in use, if there is one."""
_KEPT: list[_Loaded] = []
"""The version of the last task, whose next task does not import it again."""


@contextmanager
def using_code(code: "OwnCode | None", into: Path | None = None) -> Iterator[None]:
    """Let models be built and loaded with a code version. Its imported modules are kept for the next task.

    Args:
        code: None changes nothing.
        into: its files are copied there if the supervisor has not put them into a folder.
    """
    if code is None:
        yield
        return
    folder = Path(code.folder) if code.folder else _copied(code, into)
    if not _KEPT or (_KEPT[0].digest, _KEPT[0].folder) != (code.digest, folder):
        _KEPT[:] = [_Loaded(folder, code.digest)]
    with _in_use(_KEPT[0]):
        yield


@contextmanager
def using_folder(folder: Path) -> Iterator[None]:
    """Let models be built and loaded with the code in a folder. After the block, nothing is left from it."""
    with _in_use(_Loaded(folder)):
        yield


@contextmanager
def _in_use(loaded: _Loaded) -> Iterator[None]:
    before = dict(object_registration.GLOBAL_CUSTOM_OBJECTS)
    policy = keras.config.dtype_policy()
    loaded.add()
    _IN_USE.append(loaded)
    try:
        yield
    finally:
        _IN_USE.pop()
        loaded.remove(before)
        keras.config.set_dtype_policy(policy)


def is_active() -> bool:
    """Return whether user code is in use: then this process runs in a sandbox."""
    return bool(_IN_USE)


def _copied(code: "OwnCode", into: Path | None) -> Path:
    if into is None:
        raise ValueError("the files of the code are in no folder")
    folder = into / f"code-{code.digest[:16]}"
    for file in code.files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(file.place).read_bytes())
    return folder


def _is_inside(module: Any, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    # Thousands of modules are looked at, so no paths are made of their names.
    return isinstance(file, str) and file.startswith(f"{folder}/")


def _active() -> _Loaded:
    if not _IN_USE:
        raise RuntimeError("the task has no code")
    return _IN_USE[-1]


def _folder() -> Path:
    return _active().folder


@contextmanager
def calling(kind: type[CodeFailure], what: str) -> Iterator[None]:
    """Raise every error from the code that is called inside as a `CodeFailure`.

    Args:
        kind: the error class.
        what: was done, for the message: "building the model".

    Raises:
        CodeFatalFailure: the code raised a `FatalError` of KerasTuner.
        CodeFailure: the code raised another error, or ended the process.
        Exception: an error that affects the whole process.
    """
    try:
        yield
    except EngineError:
        raise
    except SystemExit as error:
        raise kind(f"{what} failed: the code called sys.exit({error.code!r})", trace_of(error)) from error
    # User code may raise anything.
    except Exception as error:
        if affects_process(error):
            raise
        if _is_fatal(error):
            message = f"{what} ended the search: {cause_of(error)}"
            raise CodeFatalFailure(message, trace_of(error)) from error
        raise kind(f"{what} failed: {cause_of(error)}", trace_of(error)) from error


def _is_fatal(error: Exception) -> bool:
    """Return whether an error is one that ends a search of KerasTuner."""
    # Code that raises it has imported the package, which takes three seconds.
    keras_tuner = sys.modules.get("keras_tuner")
    return keras_tuner is not None and isinstance(error, keras_tuner.errors.FatalError)


def cause_of(error: BaseException) -> str:
    """Return an error in one line, with its line in the code in use; its text alone without code."""
    if not is_active():
        return plain_message(error)
    if isinstance(error, CodeFailure):
        return str(error)
    message = plain_message(error) if str(error).strip() else ""
    frames = _own_frames(error)
    where = f" ({_relative(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({_relative(error.filename)}, line {error.lineno})"
        message = error.msg
    where += _of_network(error) + hint_for(f"{message} {error}")
    return f"{type(error).__name__}: {message}{where}" if message else f"{type(error).__name__}{where}"


def _of_network(error: BaseException) -> str:
    """Return who decides about network, if an error is that no other host was found or reached."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror) or getattr(cause, "errno", None) in _UNREACHED:
            return "; code reaches other hosts only if its project allows network"
        cause = cause.__cause__ or cause.__context__
    return ""


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the traceback lines that are in the code's own files."""
    folder = _folder()
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]


def _relative(file: str) -> str:
    path, folder = Path(file), _folder()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name


def trace_of(error: BaseException) -> str:
    """Return the traceback lines in the code's own files, and the error."""
    frames = _own_frames(error)
    for frame in frames:
        frame.filename = _relative(frame.filename)
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    text = "".join(lines).replace(str(_folder()), "").splitlines()[-MAX_TRACE_LINES:]
    return "\n".join(["Traceback of the code (most recent call last):", *text])


def entry_of(model: "CodeModel") -> Any:
    """Return an instance of the HyperModel class that a model names, or one for its function or method.

    Raises:
        CodeImportFailure: the code cannot be imported, or has no such entry.
        CodeBuildFailure: the class's constructor refuses its arguments.
    """
    # Three seconds, which other tasks do not need.
    import keras_tuner

    name, _, method = model.name.partition(".")
    module = imported(_file_of(model.path, name), {name})
    entry = getattr(module, name, None)
    if method and inspect.isclass(entry):
        return _Function(_method_of(entry, method, model), module)
    if inspect.isclass(entry) and issubclass(entry, keras_tuner.HyperModel):
        with calling(CodeBuildFailure, f"{model.name}({', '.join(model.args)})"):
            return entry(**model.args)
    if isinstance(entry, keras_tuner.HyperModel):
        if not hasattr(entry, "module"):
            # Its class may be of KerasTuner, and its `preprocess` of this file.
            entry.module = module
        return entry
    if callable(entry) and not inspect.isclass(entry):
        return _Function(entry, module)
    raise CodeImportFailure(f"{model.entry} is neither a function nor a HyperModel class")


def _method_of(kind: Any, name: str, model: "CodeModel") -> Any:
    """Return a method that builds models: of an instance, unless it needs none."""
    if isinstance(inspect.getattr_static(kind, name, None), staticmethod | classmethod):
        return getattr(kind, name)
    with calling(CodeBuildFailure, f"{kind.__name__}({', '.join(model.args)})"):
        method = getattr(kind(**model.args), name, None)
    if not callable(method):
        raise CodeImportFailure(f"{kind.__name__} has no method {name}")
    return method


class _Function:
    """Gives a function that builds models the methods that a HyperModel has."""

    def __init__(self, function: Any, module: ModuleType) -> None:
        self.build = function
        self.module = module


def has_own_fit(hypermodel: Any) -> bool:
    """Return whether a class trains its models by its own method `fit`."""
    import keras_tuner

    fit = getattr(type(hypermodel), "fit", None)
    return fit is not None and fit is not keras_tuner.HyperModel.fit


def function_of(entry: str) -> Callable[..., Any]:
    """Return a function from the code, `name` or `path:name`.

    Raises:
        CodeImportFailure: the code cannot be imported, or has no such function.
    """
    path, _, name = entry.rpartition(":")
    function = getattr(imported(_file_of(path, name), {name}), name, None)
    if not callable(function):
        raise CodeImportFailure(f"{entry} is no function")
    return function


@contextmanager
def working_in_code() -> Iterator[None]:
    """Make the code's folder the working folder, so that it finds the files beside it by their names."""
    with contextlib.chdir(_folder()):
        yield


def _file_of(path: str, name: str) -> str:
    """Return which file defines an entry, by its path.

    Args:
        path: the file's path; empty for the first that defines it.
        name: names the function or class.
    """
    defining = [path] if path and name in _defined(_folder() / path) else []
    if not path:
        defining = definitions().get(name, [])
    if not defining:
        raise CodeImportFailure(f"no file of the code defines {name}")
    return defining[0]


def definitions() -> dict[str, list[str]]:
    """Return the files that define each name, ordered by their paths. They are read, not executed."""
    folder, files_of_name = _folder(), dict[str, list[str]]()
    for path in sorted(folder.rglob("*.py")):
        for name in _defined(path):
            files_of_name.setdefault(name, []).append(str(path.relative_to(folder)))
    return files_of_name


def _defined(file: Path) -> set[str]:
    """Return which functions and classes a file defines, by name; none if it cannot be parsed."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return set()
    names: set[str] = set()
    for node in statements_of(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            # A lambda, or a function that another one makes.
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def imported(file: str, needed: AbstractSet[str] = frozenset()) -> ModuleType:
    """Return the module for a code file, imported as `python file` would find its neighbours.

    Args:
        file: its path in the version.
        needed: if all these names are defined, a later error at module level is only noted: a
            pasted guide ends with its own search, on data that are not there.

    Raises:
        CodeImportFailure: its execution fails.
    """
    loaded, path = _active(), _folder() / file
    for other in sys.modules.values():
        if getattr(other, "__file__", None) == str(path):
            return other
    neighbours = str(path.parent)
    if neighbours not in loaded.path:
        loaded.path.insert(1, neighbours)
        sys.path.insert(1, neighbours)
    module: list[ModuleType] = []
    policy = keras.config.dtype_policy()
    try:
        with calling(CodeImportFailure, f"importing {file}"), _without_searches(path):
            _execute(file, path, module)
    except CodeImportFailure as failure:
        if late := _defined_after(path, failure, needed):
            raise CodeImportFailure(
                f"{failure}: {late} is defined after that line; keep the definitions of the file alone, on "
                "the page of the code",
                failure.trace,
            ) from failure
        if not module or not needed or not needed <= vars(module[0]).keys():
            raise
        sys.modules[module[0].__name__] = module[0]
        loaded.notes.append(f"{failure}: the lines after it are not executed")
    if keras.config.dtype_policy() != policy:
        loaded.policy = keras.config.dtype_policy()
    return module[0]


@contextmanager
def with_policy() -> Iterator[None]:
    """Use the dtype policy that the code has set when it was imported, and restore the present one."""
    before = keras.config.dtype_policy()
    # Keras forgets it when a session is cleared.
    if _active().policy is not None:
        keras.config.set_dtype_policy(_active().policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _defined_after(path: Path, failure: CodeImportFailure, names: AbstractSet[str]) -> str:
    """Return one of these names whose last definition is after the line that failed; empty for none."""
    error = failure.__cause__
    if isinstance(error, ModuleNotFoundError):
        return ""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    top = [frame.lineno or 0 for frame in frames if frame.filename == str(path) and frame.name == "<module>"]
    if not top:
        return ""
    lines = {
        node.name: node.lineno
        for node in statements_of(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    return next((name for name in sorted(names) if lines.get(name, 0) > max(top)), "")


def _execute(file: str, path: Path, into: list[ModuleType]) -> None:
    """Execute a file as a module; `into` gets the module first."""
    parts = PurePosixPath(file).with_suffix("").parts
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
    with ExitStack() as on_error:
        on_error.callback(sys.modules.pop, name, None)
        spec.loader.exec_module(module)
        on_error.pop_all()


def _is_own(name: str) -> bool:
    """Return whether an imported module or package belongs to the code."""
    module, folder = sys.modules[name], _folder()
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(isinstance(place, str) and Path(place).is_relative_to(folder) for place in places)


class _SearchOfCode(Exception):
    """The code has called a KerasTuner search."""


@contextmanager
def _without_searches(path: Path) -> Iterator[None]:
    """Refuse KerasTuner searches while a file is imported: the experiment is the search."""
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
    """Return the errors in the imported files after which their other lines were not executed."""
    return tuple(_active().notes)


def thresholds() -> frozenset[float]:
    """Return the numbers with which the code compares."""
    return thresholds_in(_folder())
