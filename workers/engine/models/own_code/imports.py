"""Imports files of user code."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import keras

from workers.engine.errors import CodeImportFailure
from workers.engine.models.own_code.definitions import defined_after
from workers.engine.models.own_code.failures import calling
from workers.engine.models.own_code.in_use import active, code_folder


def imported(file: str, needed: AbstractSet[str] = frozenset()) -> ModuleType:
    """Return the module for a code file, imported as `python file` would find its neighbours.

    Args:
        file: its path in the version.
        needed: if all these names are defined, a later error at module level is only noted: a
            pasted guide ends with its own search, on data that are not there.

    Raises:
        CodeImportFailure: its execution fails.
    """
    loaded, path = active(), code_folder() / file
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
        if late := defined_after(path, failure, needed):
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
    module, folder = sys.modules[name], code_folder()
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
