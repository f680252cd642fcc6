"""Gives the gates a version's predictions: this process executes it, or one in a sandbox does."""

import json
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.messages.task import ModelWithCode
from jobs.spec.data.features import Features
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.signature import InputColumn, Signature
from workers.engine.arrays import Array
from workers.engine.data.rows import Rows
from workers.engine.errors import BadModel, DamagedFile
from workers.engine.models.build import signature_of
from workers.engine.models.predict import Batched, Predictor
from workers.engine.models.untrusted import scan_archive
from workers.engine.phases import Repeated
from workers.engine.tasks.register import features_for, load_checked, predict_sample
from workers.engine.tasks.tolerance import limit_of, rounding_limit
from workers.model_process.client import MAX_ROWS, ModelClient, ModelFailed
from workers.model_process.signature_check import SignatureMismatch, check_signature


class JudgedModel(Batched):
    """A version as the gates see it.

    Attributes:
        signature: its inputs and outputs.
        features: the pipeline in its file; None if it has none.
        is_sandboxed: whether a process in a sandbox executes it.
    """

    signature: Signature
    features: Features | None
    is_sandboxed = False

    @property
    def predicts_rows(self) -> bool:
        """Whether it has one input and one output, like all models trained here."""
        return len(self.signature.inputs) == 1 and len(self.signature.outputs) == 1

    @abstractmethod
    def __call__(self, x: Rows) -> Array:
        """Return the predictions for all rows in `x`, for a model with one input and one output."""

    @abstractmethod
    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the predictions for rows, one array per output."""

    @abstractmethod
    def rounding_limit(self, predictions: Array) -> float:
        """Return the largest difference from its predictions that rounding explains."""

    def close(self) -> None:
        """End what executes it."""


class LoadedModel(JudgedModel):
    """A version that this process executes.

    Args:
        path, folder, mesh: see `load_model`.

    Raises:
        BadModel: its file cannot be loaded.
    """

    def __init__(self, path: Path, folder: Path, mesh: MeshSpec | None = None) -> None:
        self._model = load_checked(path, folder, mesh)
        self.features = features_for(signature_of(self._model), path)
        self.signature = signature_of(self._model, self.features)
        self._predictor: Predictor | None = None

    @property
    def _predict(self) -> Predictor:
        # Models with several inputs or outputs have none.
        self._predictor = self._predictor or Predictor(self._model)
        return self._predictor

    def batch(self, x: Array) -> Array:
        """See `Batched.batch`."""
        return self._predict.batch(x)

    def __call__(self, x: Rows) -> Array:
        """See `JudgedModel.__call__`."""
        return self._predict(x)

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        """See `JudgedModel.outputs`."""
        return predict_sample(self._model, list(inputs))

    def rounding_limit(self, predictions: Array) -> float:
        """See `JudgedModel.rounding_limit`."""
        return rounding_limit(self._model, predictions)


class SandboxedModel(JudgedModel):
    """A version that a process in a sandbox executes. This process never imports its code.

    Args:
        client: the connection to that process.
        path: the model file. User code wrote it.
        registered: the signature with which the version was registered; empty if that is unknown.

    Raises:
        BadModel: it cannot be loaded, or its process does not answer as it must.
    """

    is_sandboxed = True

    def __init__(self, client: ModelClient, path: Path, registered: dict[str, Any]) -> None:
        self._client = client
        try:
            reported = client.loaded()
            check_signature(registered, reported)
        except ModelFailed as error:
            raise BadModel(str(error)) from error
        except SignatureMismatch as error:
            raise BadModel(f"its process reported another signature: {error}") from error
        plain = Signature.model_validate(registered) if registered else reported
        self.features = features_for(plain, path)
        window = None if self.features is None else self.features.window
        self.signature = plain.model_copy(update={"columns": _columns_of(self.features), "window": window})
        # Both were read from the file, but the registered one in a process with the code.
        if registered and self.signature != plain:
            raise BadModel("its registered columns are not those of the pipeline in its file")
        self._computes_in_16_bits = computes_in_16_bits(path)

    @classmethod
    def connect(cls, model: ModelWithCode) -> ModelClient:
        """Connect to a model's process, which then begins to load it.

        Raises:
            BadModel: the process could not be started, or the file is damaged.
        """
        if model.failure:
            raise BadModel(model.failure)
        try:
            # This process reads parts of it.
            scan_archive(Path(model.file))
            return ModelClient.connect(Path(model.socket), Repeated("evaluating"))
        except (ModelFailed, DamagedFile) as error:
            raise BadModel(str(error)) from error

    def batch(self, x: Array) -> Array:
        """See `Batched.batch`."""
        return self._client.predict([x])[0]

    def __call__(self, x: Rows) -> Array:
        """See `JudgedModel.__call__`."""
        parts = [self.batch(x[start : start + MAX_ROWS]) for start in range(0, len(x), MAX_ROWS)]
        try:
            return np.concatenate(parts)
        except ValueError as error:
            raise ModelFailed("its process answered with predictions of different shapes") from error

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        """See `JudgedModel.outputs`."""
        return self._client.predict(inputs)

    def rounding_limit(self, predictions: Array) -> float:
        """See `JudgedModel.rounding_limit`."""
        return limit_of(predictions, half=self._computes_in_16_bits)

    def close(self) -> None:
        """See `JudgedModel.close`."""
        self._client.close()


def _columns_of(features: Features | None) -> tuple[InputColumn, ...]:
    columns = () if features is None else features.columns
    return tuple(InputColumn(name=column.column, type=column.type) for column in columns)


def computes_in_16_bits(path: Path) -> bool:
    """Return whether a model has a layer that computes in 16 bits, by the config in its file."""
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json"))
    has_16_bits, open_parts = False, [config]
    while open_parts and not has_16_bits:
        part = open_parts.pop()
        if isinstance(part, dict):
            has_16_bits = "16" in _policy_in(part.get("dtype"))
            open_parts += part.values()
        elif isinstance(part, list):
            open_parts += part
    return has_16_bits


def _policy_in(dtype: object) -> str:
    """Return the name of a dtype or policy, which Keras writes as an object."""
    if isinstance(dtype, dict):
        config = dtype.get("config")
        dtype = config.get("name") if isinstance(config, dict) else None
    return dtype if isinstance(dtype, str) else ""
