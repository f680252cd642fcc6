"""Describes under which settings a run works: the same lines on its job's, trial's and version's page."""

from dataclasses import dataclass
from typing import NamedTuple

from jobs.models import Job
from jobs.queries.data import datasets
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.sections.precision import PrecisionSpec
from webapp.pages.shortcuts import url
from webapp.template_context import Context


class Setting(NamedTuple):
    """One setting: its name, its value in words, and the page about it, if there is one."""

    label: str
    text: str
    address: str = ""


@dataclass(frozen=True)
class RunSettings(Context):
    """The settings of a run."""

    run_settings: list[Setting]


def settings_context(row: Job | None) -> RunSettings:
    """Return a job's settings; none for a job without an experiment, such as an uploaded model's."""
    if row is None or row.revision is None:
        return RunSettings([])
    spec = row.revision.spec
    lines = [*_experiment_of(row), *_data_of(row, spec), *_code_of(row, spec)]
    if spec.model.info.by_gradient:
        lines.append(Setting("Precision", describe_precision(spec.precision)))
        lines.append(_mesh_of(row, spec.mesh))
    return RunSettings(lines)


def _experiment_of(row: Job) -> list[Setting]:
    if row.experiment is None or row.project is None or row.revision is None:
        return []
    address = url("experiment", row.project.slug, row.experiment.pk)
    return [Setting("Experiment", f"{row.experiment.name}, revision {row.revision.number}", address)]


def _data_of(row: Job, spec: ExperimentSpec) -> list[Setting]:
    version = datasets.version_of_job(row)
    home = row.project.slug if row.project is not None else ""
    if version is not None:
        slug, number = version.dataset.slug, version.number
        return [Setting("Data", f"{slug} v{number}", url("dataset_version", slug, number, project=home))]
    if spec.data is None:
        return []
    # Its version is chosen when the job starts.
    wanted = spec.data.dataset_version
    newest = (
        f"{spec.data.dataset} v{wanted}" if wanted is not None else f"{spec.data.dataset}, newest version"
    )
    return [Setting("Data", newest)]


def _code_of(row: Job, spec: ExperimentSpec) -> list[Setting]:
    if (digest := spec.model.code_digest) is None:
        return [Setting("Model", spec.model.info.label)]
    home = row.project.slug if row.project is not None else ""
    return [Setting("Code", digest[:12], url("code_version", digest, project=home))]


def _mesh_of(row: Job, mesh: MeshSpec | None) -> Setting:
    if mesh is None:
        return Setting("Mesh", "none: one device")
    return Setting("Mesh", describe_mesh(mesh), url("mesh", job=row.pk))


def describe_mesh(mesh: MeshSpec) -> str:
    """Describe a mesh, such as `2 × 4 (data × model), batches along data, 6 layout rules`."""
    parts = [f"{' × '.join(map(str, mesh.shape))} ({' × '.join(mesh.axis_names)})"]
    if mesh.batch_axis:
        parts.append(f"batches along {mesh.batch_axis}")
    if rules := len(mesh.layout):
        parts.append(f"{rules} layout rule{'s' if rules > 1 else ''}")
    if mesh.simulate:
        parts.append(f"{mesh.simulate} simulated devices")
    return ", ".join(parts)


def describe_precision(precision: PrecisionSpec) -> str:
    """Describe a precision, such as `mixed_bfloat16, 2 overrides`."""
    parts: list[str] = [precision.policy]
    if count := len(precision.overrides):
        parts.append(f"{count} override{'s' if count > 1 else ''}")
    if precision.matmul != "default":
        parts.append(f"{precision.matmul} matmul precision")
    return ", ".join(parts)
