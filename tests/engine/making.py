"""Small real data sets, models and a report for the tests of whole tasks."""

from pathlib import Path
from typing import Any

import numpy as np

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.task import DatasetFile, Member, ProfileTask
from workers.engine import profile
from workers.engine.data.dataset import load_dataset


class Listener:
    """A report that remembers what it was told."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = str(folder)
        self.artifacts: dict[str, Path] = {}
        self.warnings: list[str] = []
        self.steps: list[float] = []
        self.asked: Any = None

    def progress(self, done, total, unit):
        self.steps.append(done / total)

    def metric(self, *args, **kwargs): ...
    def log(self, line, **kwargs): ...
    def execution(self, *args, **kwargs): ...
    def checkpoint(self, *args, **kwargs): ...

    def warning(self, code, message):
        self.warnings.append(code)

    def artifact(self, role, path, *, name, meta=None):
        assert (Path(self.folder) / path).is_file()
        self.artifacts[role] = Path(self.folder) / path

    def request(self):
        return self.asked


def dataset_file(folder: Path, bundled: str) -> DatasetFile:
    """Profile a bundled set as a worker does."""
    listener = Listener(folder / f"profile-{bundled}")
    task = ProfileTask(folder=listener.folder, source="bundled", bundled=bundled)
    result = profile.run(task, listener)
    path = str(listener.artifacts["dataset"])
    return DatasetFile(path=path, digest=result["digest"], profile=result["profile"])


def spec_for(bundled: str, template: str = "linear", **more: Any) -> ExperimentSpec:
    body = {"data": {"dataset": bundled}, "model": {"kind": "template", "template": template}, **more}
    return ExperimentSpec.model_validate(body)


def train_member(folder: Path, name: str, spec: ExperimentSpec, file: DatasetFile, **how: Any) -> Member:
    """Train a tiny model and store it as the store does: without a suffix."""
    import keras

    from workers.engine.build import measure_scaling

    keras.utils.set_random_seed(how.get("seed", 0))
    data = load_dataset(file, spec.data)
    train, validation = data.parts.train, data.parts.validation
    scaling = measure_scaling(data.x[train], data.y[train], data.profile)
    units, outputs = how.get("units", 16), max(data.profile.outputs, 1)
    inputs = keras.Input(data.profile.input_shape, name="input")
    normal = keras.layers.Normalization(mean=scaling.x_mean.tolist(), variance=scaling.x_variance.tolist())
    x = keras.layers.Dense(units, activation="relu")(keras.layers.Flatten()(normal(inputs)))
    if data.task == "regression":
        x = keras.layers.Dense(outputs)(x)
        x = keras.layers.Rescaling(float(scaling.y_std[0]), offset=float(scaling.y_mean[0]))(x)
        loss = "mae"
    elif data.task == "binary":
        x, loss = keras.layers.Dense(1, activation="sigmoid")(x), "binary_crossentropy"
    else:
        x = keras.layers.Dense(outputs, activation="softmax")(x)
        loss = "sparse_categorical_crossentropy"
    model = keras.Model(inputs, x, name=how.get("model_name", f"m_{name}"))
    model.compile(keras.optimizers.Adam(0.02), loss)
    labels = data.y[train]
    if how.get("shuffled"):
        labels = np.random.default_rng(0).permutation(labels)
    model.fit(data.x[train], labels, epochs=how.get("epochs", 8), batch_size=64, verbose=0)
    model.save(folder / f"{name}.keras")
    stored = (folder / f"{name}.keras").rename(folder / f"digest-of-{name}")
    predictions = folder / f"{name}.npz"
    y_pred = model.predict(data.x[validation], verbose=0)
    np.savez(predictions, rows=validation, y_true=data.y[validation], y_pred=y_pred)
    values = {"units": units}
    return Member(name=name, model=str(stored), validation_predictions=str(predictions), values=values)
