"""Finds the functions and classes of user code that build models."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from workers.engine.errors import CodeBuildFailure, CodeImportFailure
from workers.engine.models.own_code.definitions import file_of
from workers.engine.models.own_code.failures import calling
from workers.engine.models.own_code.imports import imported

if TYPE_CHECKING:
    # It takes a tenth of a second to import, and model children do not need it.
    from jobs.spec.sections.code_model import CodeModel


def entry_of(model: "CodeModel") -> Any:
    """Return an instance of the HyperModel class that a model names, or one for its function or method.

    Raises:
        CodeImportFailure: the code cannot be imported, or has no such entry.
        CodeBuildFailure: the class's constructor refuses its arguments.
    """
    # Three seconds, which other tasks do not need.
    import keras_tuner

    name, _, method = model.name.partition(".")
    module = imported(file_of(model.path, name), {name})
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
    function = getattr(imported(file_of(path, name), {name}), name, None)
    if not callable(function):
        raise CodeImportFailure(f"{entry} is no function")
    return function
