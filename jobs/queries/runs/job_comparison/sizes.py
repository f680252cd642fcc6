"""Reads the size and latency of several models."""

from collections.abc import Sequence
from typing import NamedTuple

from jobs.messages.reports.quantization import QuantizedBytes
from jobs.models import JobArtifact, PromotionRequest
from jobs.queries.runs.job_comparison.subjects import Subject


class Size(NamedTuple):
    """How large and how fast a model is; None where it was not measured."""

    bytes: int | None
    parameters: int | None
    latency_ms: float | None
    hardware: str


def sizes_of(subjects: Sequence[Subject]) -> list[Size]:
    """Return each subject's size; latency comes from quantizations and from gates."""
    files = _file_sizes(subjects)
    gates = _gate_latencies(subjects)
    return [_size_of(subject, files, gates) for subject in subjects]


def _file_sizes(subjects: Sequence[Subject]) -> dict[int, int]:
    jobs = {subject.model_job.pk for subject in subjects if subject.model_job is not None}
    rows = JobArtifact.objects.filter(job__in=jobs, role="model").order_by("attempt", "pk")
    return dict(rows.values_list("job", "artifact__bytes"))


def _gate_latencies(subjects: Sequence[Subject]) -> dict[int, float]:
    """Return the latency that the newest gates of versions have measured, by the version's key."""
    versions = [subject.version.pk for subject in subjects if subject.version is not None]
    if not versions:
        return {}
    rows = (
        PromotionRequest.objects.filter(version__in=versions).order_by("pk").values_list("version", "gates")
    )
    return {
        version: float(gate["value"])
        for version, gates in rows
        for gate in gates
        if gate.get("name") == "latency" and isinstance(gate.get("value"), int | float)
    }


def _size_of(subject: Subject, files: dict[int, int], gates: dict[int, float]) -> Size:
    job, version = subject.model_job, subject.version
    results = job.results if job is not None else None
    size = version.artifact.bytes if version is not None else files.get(job.pk) if job is not None else None
    if size is None:
        size = _stored_bytes(getattr(results, "bytes", None))
    parameters = getattr(results, "parameters", None)
    latency, hardware = _quantization_latency(subject)
    if latency is None and version is not None and version.pk in gates:
        latency, hardware = gates[version.pk], "by its gates"
    return Size(size, parameters if isinstance(parameters, int) else None, latency, hardware)


def _quantization_latency(subject: Subject) -> tuple[float | None, str]:
    """Return the latency that a quantization measured: of its own model, or of the one it started from."""
    job = subject.model_job
    if job is None:
        return None, ""
    steps = subject.job.children.all() if subject.job is not None and subject.version is None else ()
    followed = [step for step in steps if getattr(step.payload, "source", None) == job.pk]
    for which, step in [("quantized", job), *(("original", step) for step in followed)]:
        results = step.results
        if measured := getattr(results, "latency", {}).get(which, {}).get("1"):
            return measured.p95_ms, f"on {getattr(results, 'hardware', '') or 'an unknown machine'}"
    return None, ""


def _stored_bytes(value: object) -> int | None:
    if isinstance(value, int):
        return value
    return value.file.after if isinstance(value, QuantizedBytes) else None
