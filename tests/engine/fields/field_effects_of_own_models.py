"""Probes for fields of models that users bring: versions that are trained further, code, and scripts."""

import json
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import keras
import numpy as np

from jobs.messages.script_command import command_of
from jobs.models import Alias
from jobs.queries.experiments import base_versions
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.variables import head_units
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.script_model import ScriptModel
from jobs.spec.space.values import apply_values
from tests.engine.fields.field_effects import Files
from tests.engine.fields.field_effects_in_rows import in_new_rows
from tests.engine.models.test_fine_tuning import stored
from tests.factories import make_model
from tests.jobs.yard import Yard
from tests.own_code import IMPORTS, code_in
from workers.engine.exports.source import ExportSource
from workers.engine.exports.writing import write_model
from workers.engine.models.keras_private import layers_inside
from workers.engine.models.own_code import entries
from workers.engine.models.own_code.in_use import using_code
from workers.engine.training.prepare import prepare

DIGEST = "c" * 64


def fine_tuned(spec: ExperimentSpec, files: Files) -> Any:
    """Return the layers, trained variables and learning rates when a model is trained further."""
    loaded = files.load(spec)
    keras.backend.clear_session(free_memory=False)
    keras.utils.set_random_seed(7)
    inputs = keras.Input(loaded.profile.input_shape, name="given")
    first = keras.layers.Dense(8, activation="relu", name="first")(inputs)
    outputs = keras.layers.Dense(3, activation="softmax", name="output")(first)
    with tempfile.TemporaryDirectory() as folder:
        file = stored(keras.Model(inputs, outputs), Path(folder))
        model = spec.model.model_copy(update={"digest": file.digest})
        ready = prepare(
            spec.model_copy(update={"model": model}), loaded, loaded.parts.train, name="t", seed=0
        )
    trained = [variable.path for variable in ready.model.trainable_variables]
    rates = keras.optimizers.serialize(ready.model.optimizer)
    factor = float(getattr(ready.model.optimizer, "rate_factor", 1.0))
    return json.dumps(ready.model.get_config(), default=str), trained, rates, factor


def smaller_model(spec: ExperimentSpec, _: Files) -> Any:
    """Return the types of the weights that a model has after the step that makes it smaller."""
    keras.backend.clear_session(free_memory=False)
    inputs = keras.Input((4,), name="given")
    hidden = keras.layers.Dense(8, name="first")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(3, name="output")(hidden))
    assert spec.after.quantize is not None
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m.keras")
        rows = np.ones((2, 4), np.float32)
        source = ExportSource.of_file(Path(folder) / "m.keras", Path(folder), rows)
        file = write_model(spec.after.quantize.format, source, Path(folder) / "smaller.keras")
    return sorted({str(variable.dtype) for variable in file.model.variables})


@in_new_rows
def base_version(spec: ExperimentSpec, yard: Yard) -> Any:
    """Return the version that a spec starts from, or why it cannot be found."""
    for name in ("first", "second"):
        registered_model = make_model(name, project=yard.project, by=yard.owner, versions=2)
        for number, alias in ((1, "oldest"), (2, "newest")):
            version = registered_model.versions.get(number=number)
            Alias.objects.create(model=registered_model, name=alias, version=version)
    base, problems = base_versions.find_base_version(yard.project, spec, yard.owner)
    return str(base), [problem.message for problem in problems]


def command(spec: ExperimentSpec, _: Files) -> Any:
    """Return a script's command line and variables."""
    assert isinstance(spec.model, ScriptModel)
    return command_of(spec.model, ()), spec.model.env


def code(spec: ExperimentSpec, _: Files) -> Any:
    """Return the code version that a runner gets."""
    return spec.model.code_digest


def constructor(spec: ExperimentSpec, _: Files) -> Any:
    """Return the arguments that the constructor of a class of own code gets."""
    assert isinstance(spec.model, CodeModel)
    received: dict[str, Any] = {}

    class Named:
        def __init__(self, **arguments: Any) -> None:
            received.update(arguments)

        def build(self, hp: Any) -> None:
            del hp

    with patch.multiple(entries, file_of=MagicMock(), imported=lambda *_: SimpleNamespace(Named=Named)):
        entries.entry_of(spec.model)
    return received


def layers_around_code(spec: ExperimentSpec, files: Files) -> Any:
    """Return the layers of the saved model around that of own code."""
    loaded = files.load(spec)
    text = IMPORTS + (
        "def build_model(hp):\n"
        f"    return keras.Sequential([layers.Flatten(), layers.Dense({head_units(loaded.profile)})])\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        code = code_in(Path(folder) / "code", text)
        with using_code(code, Path(folder)):
            ready = prepare(spec, loaded, loaded.parts.train, name="t", seed=0)
            return [type(layer).__name__ for layer in layers_inside(ready.model_to_save("t"))]


def values(spec: ExperimentSpec, _: Files) -> Any:
    """Return the values with which code builds a trial's model."""
    return apply_values(spec, {"units": 8}).model.model_dump()
