"""Exports a trained model as the `.keras` file that is registered and served."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.contracts.signature import Signature
from workers.engine.errors import EngineError
from workers.engine.models.augment import saved_variables
from workers.engine.models.build import build, signature_of
from workers.engine.models.files import load_model, save_model
from workers.engine.models.mesh import use_mesh
from workers.engine.models.variables import assign, values
from workers.engine.report import Report
from workers.engine.tasks.artifacts import summary_of, write_json
from workers.engine.training.loops import predict
from workers.engine.training.prepare import Prepared, predict_batch_size

TOLERANCE = {"float32": 1e-5, "mixed_float16": 2e-2, "mixed_bfloat16": 5e-2}
"""Tolerated difference between the saved and the trained model, relative to the largest prediction.

It is larger in 16 bits: a mesh sums in another order, which rounds differently.
"""


class BadExport(EngineError):
    """The saved file's predictions differ from the trained model's."""

    code = "bad_export"


@dataclass(frozen=True)
class ExportedModel:
    """An exported model.

    Attributes:
        model: as loaded from the file.
        signature: of the model.
        parameters: number of parameters.
        bytes: size of the file.
    """

    model: Any
    signature: Signature
    parameters: int
    bytes: int


def export(prepared: Prepared, report: Report, name: str, seed: int) -> ExportedModel:
    """Save the model without optimizer and mesh, load the file, compare predictions and report the artifact.

    Args:
        prepared: the trained model.
        report: receives the artifacts.
        name: of the model.
        seed: of the new model.

    Raises:
        BadExport: the loaded file's predictions differ.
    """
    # The batch size of the test rows, for which the loaded model is compiled in any case.
    batch_size = predict_batch_size(prepared.spec, len(prepared.dataset.parts.test))
    sample = prepared.dataset.x[:batch_size]
    # Read everything from the trained model before its mesh is replaced by a single device, for which
    # the exported model is built.
    expected = prepared.predict(sample, batch_size)
    weights = values(saved_variables(prepared.model))
    use_mesh(None, [], 1)
    # This model is not compiled: a compiled one would store its optimizer and a custom loss in the file.
    spec, profile = prepared.spec, prepared.dataset.profile
    plain = build(spec, profile, prepared.scaling, name=name, seed=seed)
    assign(plain.variables, weights)
    path = Path(report.folder) / "model.keras"
    save_model(plain, path, prepared.dataset.features)
    loaded = load_model(path, Path(report.folder))
    found = predict(loaded, sample, batch_size)
    difference = float(np.abs(expected - found).max())
    limit = TOLERANCE[spec.precision.policy] * max(float(np.abs(expected).max()), 1.0)
    # `not … <=` instead of `>`: a difference that is NaN is an error too.
    if not difference <= limit:
        raise BadExport(f"the saved model's predictions differ from the trained one's by {difference:.3g}")
    summary = summary_of(plain)
    write_json(report, "summary", "summary.json", summary)
    signature = signature_of(loaded, prepared.dataset.features)
    report.artifact(
        "model",
        path.name,
        name=f"{name}.keras",
        meta={"signature": signature.model_dump(mode="json"), "class_labels": list(profile.class_labels)},
    )
    return ExportedModel(loaded, signature, int(plain.count_params()), path.stat().st_size)
