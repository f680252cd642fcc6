"""Versions that need user code, for tests of the prediction server."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from jobs.messages.release import Release, ReleasedCode, ReleasedFile, ReleasedVersion
from jobs.messages.sandbox import Level

from .fakes import FakeDashboard

TELLING = '''
import keras


@keras.saving.register_keras_serializable("own")
class Own(keras.layers.Layer):
    """Returns the sum of its input, and what `answer` finds out."""

    def call(self, x):
        from helpers import answer

        total = keras.ops.sum(x, axis=-1, keepdims=True)
        return keras.ops.concatenate([total, answer(x, total)], axis=-1)

    def compute_output_spec(self, x):
        return keras.KerasTensor((*x.shape[:-1], 2), "float32")
'''
"""The layer of `own.keras`, which `make_models` saves. `answer` is in another module of the code."""

HARMLESS = """
def answer(x, total):
    return total * 0 + 7
"""


def version_with(
    dashboard: FakeDashboard,
    number: int,
    model: bytes,
    helpers: str = HARMLESS,
    *,
    minimum: Level = Level.LANDLOCK,
    requirements: tuple[str, ...] = (),
) -> ReleasedVersion:
    """Store a model and its code; return the version that names them."""
    code = code_with(dashboard, {"model.py": TELLING, "helpers.py": helpers}, minimum)
    code = code.model_copy(update={"requirements": requirements})
    return dashboard.add(number, model).model_copy(update={"code": code})


def code_with(dashboard: FakeDashboard, files: Mapping[str, str], minimum: Level) -> ReleasedCode:
    """Store a code version's files."""
    stored = []
    for path, text in files.items():
        body = text.encode()
        digest = hashlib.sha256(body).hexdigest()
        dashboard.files[digest] = body
        stored.append(ReleasedFile(path=path, digest=digest, bytes=len(body)))
    whole = hashlib.sha256("".join(file.digest for file in stored).encode()).hexdigest()
    return ReleasedCode(digest=whole, files=tuple(stored), minimum=minimum.value)


def served(model: str, generation: int, *versions: ReleasedVersion) -> Release:
    """Return the first version's release."""
    return Release(
        model=model,
        generation=generation,
        production=versions[0].number if versions else None,
        versions=versions,
        issued_at="x",
    )


def save(folder: Path) -> Path:
    """Save `own.keras`, as a training with the code does."""
    import keras

    from tests.own_layers import defined

    path = folder / "own.keras"
    with defined(TELLING) as module:
        inputs = keras.Input((4,), name="x")
        keras.Model(inputs, module.Own(name="y")(inputs)).save(path)
    return path
