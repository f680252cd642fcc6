"""Creates small real data sets, models and a report for tests of whole tasks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.member import Member
from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.pruning import Curve
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.tasks import profile

if TYPE_CHECKING:  # it imports Keras
    from workers.engine.models.scaling import Scaling

Array = npt.NDArray[Any]
Weights = tuple[Array, Array]  # kernel [inputs, outputs], bias [outputs]


class ArtifactReport:
    """A report that records artifacts, warnings and steps."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = str(folder)
        self.artifacts: dict[str, Path] = {}
        self.warnings: list[str] = []
        self.messages: list[str] = []
        self.steps: list[float] = []
        self.phases: list[str] = []
        self.pending_request: Any = None

    def progress(self, done: float, total: float, unit: str) -> None:
        self.steps.append(done / total)

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def for_trial(self, number: int) -> "ArtifactReport":
        return self

    def trial_started(self) -> None: ...
    def trial_finished(self, *args: Any, **kwargs: Any) -> None: ...
    def metric(self, *args: Any, **kwargs: Any) -> None: ...
    def log(self, line: str, **kwargs: Any) -> None: ...
    def execution(self, *args: Any, **kwargs: Any) -> None: ...
    def checkpoint(self, *args: Any, **kwargs: Any) -> None: ...
    def resumed(self, **kwargs: Any) -> None: ...
    def declared(self, *args: Any) -> None: ...
    def baseline(self, *args: Any) -> None: ...

    def warning(self, code: str, message: str) -> None:
        self.warnings.append(code)
        self.messages.append(message)

    def artifact(self, role: str, path: str, *, name: str, meta: object = None) -> None:
        assert (Path(self.folder) / path).is_file()
        self.artifacts[role] = Path(self.folder) / path

    def request(self) -> Any:
        return self.pending_request

    def recorded(self) -> Sequence[str]:
        return ()

    def curves(self) -> Sequence[Curve]:
        return ()


def dataset_file(folder: Path, bundled: str) -> DatasetFile:
    """Profile a bundled data set as a worker does."""
    report = ArtifactReport(folder / f"profile-{bundled}")
    task = ProfileTask(folder=report.folder, source="bundled", bundled=bundled)
    result = profile.run(task, report)
    path = str(report.artifacts["dataset"])
    return DatasetFile(path=path, digest=result["digest"], profile=result["profile"])


def spec_for(bundled: str, template: str = "linear", **more: Any) -> ExperimentSpec:
    body = {"data": {"dataset": bundled}, "model": {"kind": "template", "template": template}, **more}
    return ExperimentSpec.model_validate(body)


def train_member(folder: Path, name: str, spec: ExperimentSpec, file: DatasetFile, **options: Any) -> Member:
    """Train a tiny model in closed form and store it without a suffix, as the artifact store does.

    Its hidden layer is random and its last layer is fitted by least squares (Huang, Zhu and Siew 2006,
    Extreme learning machine). It is as good as some epochs of Adam, and nothing is compiled.
    """
    from workers.engine.models.files import save_model
    from workers.engine.models.scaling import measure_scaling

    data = load_dataset(file, present(spec.data))
    train, validation = data.parts.train, data.parts.validation
    scaling = measure_scaling(data.x[train], data.y[train], data.profile)
    units = options.get("units", 16)
    rng = np.random.default_rng(options.get("seed", 0))
    z = _normalized(data.x[:], scaling)
    first = rng.normal(size=(z.shape[1], units)) / np.sqrt(z.shape[1]), rng.normal(size=units) / 2
    hidden = np.maximum(z @ first[0] + first[1], 0)
    labels = np.random.default_rng(1).permutation(data.y[train]) if options.get("shuffled") else data.y[train]
    last = _least_squares(hidden[train], _targets(data, labels, scaling))

    model = _with_weights(data, scaling, options.get("model_name", f"m_{name}"), first, last)
    save_model(model, folder / f"{name}.keras", data.features)
    stored = (folder / f"{name}.keras").rename(folder / f"digest-of-{name}")
    predictions = folder / f"{name}.npz"
    y_pred = _predictions(data.task, hidden[validation] @ last[0] + last[1], scaling)
    np.savez(predictions, rows=validation, y_true=data.y[validation], y_pred=y_pred)
    values = {"units": units}
    return Member(name=name, model=str(stored), validation_predictions=str(predictions), values=values)


def _normalized(x: Array, scaling: "Scaling") -> Array:
    mean, variance = (np.broadcast_to(a, x.shape[1:]).ravel() for a in (scaling.x_mean, scaling.x_variance))
    return (x.reshape(len(x), -1) - mean) / np.sqrt(variance)


def _least_squares(hidden: Array, targets: Array, ridge: float = 10.0) -> Weights:
    design = np.column_stack([hidden, np.ones(len(hidden))])
    solution = np.linalg.solve(design.T @ design + ridge * np.eye(design.shape[1]), design.T @ targets)
    return solution[:-1], solution[-1]


def _targets(data: Dataset, labels: Array, scaling: "Scaling") -> Array:
    """Return the last layer's targets before its activation: scaled values, or logits ±3."""
    if data.task == "regression":
        return (labels.reshape(len(labels), -1) - present(scaling.y_mean)[0]) / present(scaling.y_std)[0]
    one_hot = labels.reshape(-1, 1) if data.task == "binary" else np.eye(data.profile.outputs)[labels.ravel()]
    return 6.0 * one_hot - 3.0


def _predictions(task: str, last: Array, scaling: "Scaling") -> Array:
    """Return the model's predictions from its last layer's outputs before the activation."""
    if task == "regression":
        return last * present(scaling.y_std)[0] + present(scaling.y_mean)[0]
    if task == "binary":
        return 1 / (1 + np.exp(-last))
    exponentials = np.exp(last - last.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def _with_weights(data: Dataset, scaling: "Scaling", name: str, first: Weights, last: Weights) -> Any:
    """Return a Keras model with two dense layers and an optimizer state, like stored models."""
    import keras

    activation = {"regression": None, "binary": "sigmoid"}.get(str(data.task), "softmax")
    layers = [
        keras.layers.Dense(len(first[1]), activation="relu", kernel_initializer="zeros"),
        keras.layers.Dense(len(last[1]), activation=activation, kernel_initializer="zeros"),
    ]
    inputs = keras.Input(data.profile.input_shape, name="input")
    normal = keras.layers.Normalization(mean=scaling.x_mean.tolist(), variance=scaling.x_variance.tolist())
    x = layers[1](layers[0](keras.layers.Flatten()(normal(inputs))))
    if data.task == "regression":
        x = keras.layers.Rescaling(
            float(present(scaling.y_std)[0]), offset=float(present(scaling.y_mean)[0])
        )(x)
    model = keras.Model(inputs, x, name=name)
    for layer, weights in zip(layers, (first, last), strict=True):
        layer.set_weights(list(weights))
    model.compile(keras.optimizers.Adam())
    model.optimizer.build(model.trainable_variables)
    return model
