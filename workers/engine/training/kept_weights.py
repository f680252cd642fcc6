"""Keeps the weights of a trained model whose file cannot be written or loaded: no training is lost."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from workers.engine.errors import EngineError, affects_process
from workers.engine.models.code_models.code_build import CodeBuild, finished_model
from workers.engine.models.code_models.saving import NotSaved, explained
from workers.engine.models.devices.weights_files import saving_in_blocks
from workers.engine.models.own_code.failures import trace_of
from workers.engine.models.variables import are_spread
from workers.engine.report import Report

SUFFIX = ".weights.h5"
"""Keras loads only files with this suffix as weights."""


@contextmanager
def keeping(build: CodeBuild, report: Report, name: str) -> Iterator[None]:
    """Save a model inside; if that fails, write its weights as an artifact.

    Args:
        build: the trained model.
        report: receives the artifact.
        name: the model's name.

    Raises:
        NotSaved: saving failed; the message has the reason, the remedy, and the use of the weights.
        Exception: an error that affects the whole process.
    """
    try:
        yield
    except Exception as error:
        if affects_process(error):
            raise
        use = _write(build.code_model, report, name)
        # An error of this program has its explanation.
        reason = (
            str(error) if isinstance(error, EngineError) else explained(finished_model(build, name), error)
        )
        raise NotSaved(f"{reason}. {use}", trace_of(error)) from error


def _write(model: Any, report: Report, name: str) -> str:
    """Write a model's weights and report the artifact; return what can be done with it."""
    file = Path(report.folder) / f"model{SUFFIX}"
    use = (
        f"The trained weights are kept in the file {name}{SUFFIX} of this job: build the model by this code "
        "with the same hyperparameters, call it with rows once, and then load them by "
        f"model.load_weights({name + SUFFIX!r})"
    )
    try:
        with saving_in_blocks() if are_spread(model.variables) else nullcontext():
            model.save_weights(file)
    # A layer of a user may store its weights by a method of its own.
    except Exception as error:
        if affects_process(error):
            raise
        file = file.with_name("model.weights.npz")
        np.savez(file, *(np.asarray(variable.value) for variable in model.weights))
        use = (
            f"The trained weights are kept in the file {name}.weights.npz of this job, in the order of "
            "model.weights: build the model by this code with the same hyperparameters, call it with rows "
            "once, and then assign each"
        )
    report.artifact("weights", file.name, name=name + "".join(file.suffixes))
    return use
