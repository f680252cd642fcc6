"""Keeps the code version that this process uses: its folder, its modules and its objects in Keras."""

import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import keras

from workers.engine.models.keras_private import object_registration

if TYPE_CHECKING:
    # It takes a tenth of a second to import, and model children do not need it.
    from jobs.messages.task import OwnCode


@dataclass
class LoadedCode:
    """A code version.

    Attributes:
        folder: has its files.
        digest: the version's digest.
        path: its entries in the module path.
        modules, registered: its imported modules and the objects that it has registered in Keras, while it is
            not in use.
        notes: errors in its files that do not prevent their use.
        policy: the dtype policy that its files set when they are imported; None if they set none.
        passes_batch_size: whether the own `fit` of a class gets the size of a batch.
    """

    folder: Path
    digest: str = ""
    path: list[str] = field(default_factory=list)
    modules: dict[str, ModuleType] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    policy: Any = None
    passes_batch_size: bool = True

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


_IN_USE: list[LoadedCode] = []
"""The version that is in use, if there is one."""
_KEPT: list[LoadedCode] = []
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
        _KEPT[:] = [LoadedCode(folder, code.digest)]
    _KEPT[0].passes_batch_size = code.passes_batch_size
    with _in_use(_KEPT[0]):
        yield


def forget_after_use() -> None:
    """Import the code again for the next task: a module may keep parts of a model without values."""
    _KEPT.clear()


@contextmanager
def using_folder(folder: Path) -> Iterator[None]:
    """Let models be built and loaded with the code in a folder. After the block, nothing is left from it."""
    with _in_use(LoadedCode(folder)):
        yield


@contextmanager
def _in_use(loaded: LoadedCode) -> Iterator[None]:
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


def passes_batch_size() -> bool:
    """Return whether the own `fit` of a class gets the size of a batch: not in jobs of an earlier release."""
    return all(loaded.passes_batch_size for loaded in _IN_USE)


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


def active() -> LoadedCode:
    """Return the code version in use."""
    if not _IN_USE:
        raise RuntimeError("the task has no code")
    return _IN_USE[-1]


def code_folder() -> Path:
    """Return the folder that has the files of the code in use."""
    return active().folder


@contextmanager
def working_in_code() -> Iterator[None]:
    """Make the code's folder the working folder, so that it finds the files beside it by their names."""
    with contextlib.chdir(code_folder()):
        yield


@contextmanager
def with_policy(wanted: str | None = None) -> Iterator[None]:
    """Use the dtype policy that the code has set when it was imported, and restore the present one.

    Args:
        wanted: the experiment's policy, for code that sets none.
    """
    before = keras.config.dtype_policy()
    # Keras forgets it when a session is cleared.
    if (policy := active().policy or wanted) is not None:
        keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def notes() -> Sequence[str]:
    """Return the errors in the imported files after which their other lines were not executed."""
    return tuple(active().notes)
