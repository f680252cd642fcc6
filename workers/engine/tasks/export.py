"""Exports a trained model as the file that is registered and served."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.exports import STORED
from jobs.spec.signature import Signature
from workers.engine.errors import EngineError
from workers.engine.exports.source import ExportSource
from workers.engine.exports.writing import write_model
from workers.engine.models.build import signature_of
from workers.engine.models.keras_private import layers_inside
from workers.engine.models.precision import FLOAT8
from workers.engine.report import Report
from workers.engine.tasks.artifacts import summary_of, write_json
from workers.engine.training.loops import predict
from workers.engine.training.prepare import Prepared, predict_batch_size


class BadExport(EngineError):
    """The saved file's predictions differ from the trained model's."""

    code = "bad_export"


@dataclass(frozen=True)
class ExportedModel:
    """An exported model.

    Attributes:
        model: as loaded from the file.
        signature: the model's signature.
        parameters: the parameter count.
        bytes: the file size.
    """

    model: Any
    signature: Signature
    parameters: int
    bytes: int


def export(prepared: Prepared, report: Report, name: str) -> ExportedModel:
    """Save the model without optimizer, load the file, compare predictions and report the artifact.

    On a mesh the model is loaded on it again.

    Args:
        prepared: the trained model.
        report: receives the artifacts.
        name: the model's name.

    Raises:
        BadExport: the loaded file's predictions differ.
        NotSaved: user code prevents it; the weights are an artifact.
    """
    # The batch size of the test rows, for which the loaded model is compiled in any case.
    batch_size = predict_batch_size(prepared.spec, len(prepared.dataset.parts.test))
    sample = prepared.dataset.x[:batch_size]
    expected = prepared.predict(sample, batch_size)
    spec, profile = prepared.spec, prepared.dataset.profile
    path = Path(report.folder) / STORED.file_name()
    with prepared.keeping_weights(report, name):
        plain = prepared.model_to_save(name)
        loaded = write_model(STORED, ExportSource(plain, prepared.dataset.features), path).model
        difference = float(np.abs(expected - predict(loaded, sample, batch_size)).max())
        limit = STORED.tolerances[policy_of(spec, plain)] * max(float(np.abs(expected).max()), 1.0)
        # `not … <=` instead of `>`: a difference that is NaN is an error too.
        if not difference <= limit:
            raise BadExport(
                f"the saved model's predictions differ from the trained one's by {difference:.3g}"
            )
    summary = summary_of(plain)
    write_json(report, "summary", "summary.json", summary)
    signature = signature_of(loaded, prepared.dataset.features)
    report.artifact(
        "model",
        path.name,
        name=STORED.file_name(name),
        meta={"signature": signature.model_dump(mode="json"), "class_labels": list(profile.class_labels)},
    )
    return ExportedModel(loaded, signature, int(plain.count_params()), path.stat().st_size)


def policy_of(spec: ExperimentSpec, model: Any) -> str:
    """Return the coarsest dtype policy of a model's layers, which overrides and code may set too."""
    layers = layers_inside(model)
    if any(layer.quantization_mode == FLOAT8 for layer in layers):
        return FLOAT8
    dtypes = {str(layer.compute_dtype) for layer in layers}
    return next(
        (f"mixed_{name}" for name in ("bfloat16", "float16") if name in dtypes), spec.precision.policy
    )
