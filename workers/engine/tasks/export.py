"""Saves a trained model as the `.keras` file that is registered and served."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.contracts.signature import Signature
from workers.engine.data.table import Array
from workers.engine.errors import EngineError
from workers.engine.models.augment import lasting
from workers.engine.models.build import build, signature_of
from workers.engine.models.files import load_model, save_model
from workers.engine.models.mesh import use_mesh
from workers.engine.models.variables import assign, values
from workers.engine.report import Report
from workers.engine.tasks.artifacts import summary_of, write_json
from workers.engine.training.loops import predict
from workers.engine.training.prepare import Prepared

TOLERANCE = {"float32": 1e-5, "mixed_float16": 2e-2, "mixed_bfloat16": 5e-2}
"""Largest difference between the saved and the trained model, relative to the largest prediction.

Wider for half types: a mesh adds up in another order, and their last digit is coarse.
"""


class BadExport(EngineError):
    """The saved file does not predict what the trained model does."""

    code = "bad_export"


@dataclass(frozen=True)
class Exported:
    """The file's model, loaded again, and what is known of it."""

    model: Any
    signature: Signature
    parameters: int
    bytes: int


def export(prepared: Prepared, report: Report, name: str, seed: int) -> Exported:
    """Save the model without optimizer and mesh, load the file again, compare, hand it in.

    The weights go into a fresh model that was never compiled: a compiled one would carry its
    optimizer and our loss into the file.

    Raises:
        BadExport: the loaded file predicts something else.
    """
    sample = prepared.dataset.x[: prepared.batches.size]
    expected = predict(prepared.model, sample, prepared.batches.size)
    weights = values(lasting(prepared.model))
    use_mesh(None, [], 1)
    spec, profile = prepared.spec, prepared.dataset.profile
    plain = build(spec, profile, prepared.scaling, name=name, seed=seed)
    assign(plain.variables, weights)
    path = Path(report.folder) / "model.keras"
    save_model(plain, path)
    loaded = load_model(path, Path(report.folder))
    found = predict(loaded, sample, prepared.batches.size)
    _compare(expected, found, TOLERANCE[spec.precision.policy])
    summary = summary_of(plain)
    write_json(report, "summary", "summary.json", summary)
    signature = signature_of(loaded)
    report.artifact(
        "model",
        path.name,
        name=f"{name}.keras",
        meta={"signature": signature.model_dump(mode="json"), "class_labels": list(profile.class_labels)},
    )
    return Exported(loaded, signature, int(plain.count_params()), path.stat().st_size)


def _compare(expected: Array, found: Array, tolerance: float) -> None:
    difference = float(np.abs(expected - found).max())
    if not difference <= tolerance * max(float(np.abs(expected).max()), 1.0):
        raise BadExport(f"the saved model's predictions differ from the trained one's by {difference:.3g}")
