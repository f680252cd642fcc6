"""Makes reports about models, as the engine writes them, without training any model."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from jobs.messages.reports.base import MetricValue, ModelReport
from jobs.messages.reports.ensemble import EnsembleReport
from jobs.messages.reports.evaluation import EvaluationReport
from jobs.messages.reports.quantization import (
    Agreement,
    BytesBeforeAfter,
    CallTime,
    LayerError,
    QuantizationReport,
    QuantizedBytes,
    SkippedLayer,
)
from jobs.messages.reports.shardings import LiveVariable, Shardings
from jobs.models import Artifact, Job, JobArtifact
from jobs.spec.sections.data import Task
from jobs.store import store
from workers.engine.evaluation.evaluate import evaluate
from workers.engine.evaluation.members import MemberPredictions, compare_members

LABELS = ("benign", "malignant", "unknown")


def store_report(
    job: Job, report: ModelReport | bytes, role: str = "report", name: str = "report.json"
) -> JobArtifact:
    """Store a report as a job's artifact."""
    content = report if isinstance(report, bytes) else report.model_dump_json().encode()
    with TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        stored = store().put(file)
    artifact, _ = Artifact.objects.get_or_create(digest=stored.digest, defaults={"bytes": stored.bytes})
    return JobArtifact.objects.create(job=job, attempt=1, artifact=artifact, role=role, name=name)


def predictions(task: Task, noise: float, seed: int = 7, rows: int = 240) -> tuple[Any, Any]:
    """Return true values and predictions; more noise makes the predictions worse."""
    truth = np.random.default_rng(0)
    rng = np.random.default_rng(seed)
    if task == "regression":
        values = truth.normal(100, 20, rows)
        return values, values + noise * 10 * rng.normal(size=rows)
    if task == "multilabel":
        targets = truth.integers(0, 2, (rows, 3))
        return targets, 1 / (1 + np.exp(-(4 * (targets - 0.5) + noise * 2 * rng.normal(size=targets.shape))))
    classes = 2 if task == "binary" else 3
    labels = truth.integers(0, classes, rows)
    logits = 4 * np.eye(classes)[labels] + noise * 2 * rng.normal(size=(rows, classes))
    powers = np.exp(logits)
    return labels, powers / powers.sum(axis=1, keepdims=True)


@cache
def evaluation_report(task: Task = "binary", noise: float = 1.0) -> EvaluationReport:
    """Return a plausible model's evaluation."""
    truth, guess = predictions(task, noise)
    labels = {"binary": LABELS[:2], "regression": ()}.get(task, LABELS)
    return evaluate(task, truth, guess, labels)


@cache
def ensemble_report(
    noises: tuple[float, ...] = (1.0, 1.2, 1.5),
    *,
    names: tuple[str, ...] = (),
    titles: tuple[str, ...] = (),
    task: Task = "multiclass",
    method: Literal["weighted", "mean"] = "weighted",
) -> EnsembleReport:
    """Return the comparison of members whose errors are independent."""
    names = names or tuple(f"m{number}" for number in range(1, len(noises) + 1))
    titles = titles or tuple(f"Retrain trial {number}" for number in range(1, len(noises) + 1))
    members = [predictions(task, noise, seed) for seed, noise in enumerate(noises, start=1)]
    truth = members[0][0]
    guesses = tuple(guess for _, guess in members)
    return compare_members(
        MemberPredictions(task, names, titles, np.arange(len(truth)), truth, guesses), method, 0
    )


def quantization_report(
    *,
    accuracy: tuple[float, float] = (0.975, 0.9722),
    file: tuple[int, int] = (400_000, 102_000),
    p50: tuple[float, float] = (0.2, 0.28),
    **changes: Any,
) -> QuantizationReport:
    """Return the comparison of a model with its int8 version."""
    metrics = {
        which: {
            "accuracy": MetricValue(
                value=value, low=value - 0.02, high=value + 0.01, interval="wilson", rows=360
            ),
            "log_loss": MetricValue(value=1 - value, low=0.9 - value, high=1.1 - value, rows=360),
        }
        for which, value in zip(("original", "quantized"), accuracy, strict=True)
    }
    latency = {
        which: {
            "1": CallTime(p50_ms=value, p95_ms=2 * value, calls=200),
            "32": CallTime(p50_ms=3 * value, p95_ms=5 * value, calls=200),
        }
        for which, value in zip(("original", "quantized"), p50, strict=True)
    }
    fields: dict[str, Any] = {
        "mode": "int8",
        "task": "multiclass",
        "test_rows": 360,
        "bytes": QuantizedBytes(
            file=BytesBeforeAfter(before=file[0], after=file[1], ratio=file[1] / file[0]),
            weights=BytesBeforeAfter(before=file[0] - 9000, after=file[1] - 9000),
            stored=3 * file[0],
        ),
        "metrics": metrics,
        "agreement": Agreement(share=0.994),
        "latency": latency,
        "hardware": "Generic CPU @ 2.90GHz, 2 of 2 threads",
        "platform": "cpu",
        "layers": (
            LayerError(layer="dense", kind="Dense", relative_error=0.0041),
            LayerError(layer="output", kind="Dense", relative_error=0.0079),
        ),
        "skipped": (SkippedLayer(layer="conv2d", kind="Conv2D", reason="Conv2D has no int8 implementation"),),
    }
    return QuantizationReport(**{**fields, **changes})


def live(path: str, **changed: Any) -> LiveVariable:
    """Return a weight of a model on a mesh as its live array was found."""
    fields: dict[str, Any] = {
        "path": path, "shape": (64, 32), "dtype": "float32", "rule": 0, "designed": (None, "model"),
        "live": (None, "model"), "shard_shape": (64, 8), "shard_bytes": 2048, "devices": 8,
    }  # fmt: skip
    return LiveVariable(**{**fields, **changed})


def shardings(*variables: LiveVariable, **changed: Any) -> Shardings:
    """Return the report of a training on 2 × 4 devices about its live arrays."""
    fields: dict[str, Any] = {
        "shape": (2, 4), "axis_names": ("data", "model"), "batch_axis": "data", "batch_size": 64,
        "devices": tuple(f"cpu:{i}" for i in range(8)), "bytes_per_device": (4096,) * 8,
        "variables": variables or (live("dense_1/kernel"),),
    }  # fmt: skip
    return Shardings(**{**fields, **changed})
