"""Reads a model's lineage: data set → experiment → job → trial → artifact, as names and digests."""

from typing import Any

from jobs.models import CodeVersion, DatasetVersion, Job, JobArtifact
from jobs.spec.sections.version_model import VersionModel


def lineage_of(source: JobArtifact) -> dict[str, Any]:
    """Describe the lineage of a job's model. It is stored with the version and never changes."""
    job = source.job
    chain: dict[str, Any] = {
        "job": job.pk,
        "kind": job.public_kind,
        "root_job": job.root_id_or_self,
        "attempt": source.attempt,
        "artifact": source.artifact_id,
    }
    chain |= job.payload.lineage()
    if job.revision is not None:
        revision = job.revision
        chain |= {
            "experiment": revision.experiment_id,
            "experiment_name": revision.experiment.name,
            "revision": revision.number,
            "revision_digest": revision.digest,
        }
        model = revision.spec.model
        if model.code_digest is not None:
            chain |= _code_lineage(job, model.code_digest)
        if isinstance(model, VersionModel):
            chain["fine_tuned_from"] = {
                "model": model.model,
                "number": model.number,
                "digest": model.digest,
                "args": model.resolved().model_dump(mode="json"),
            }
    return chain | _data_lineage(job.payload.dataset_version)


def _code_lineage(job: Job, digest: str) -> dict[str, Any]:
    rows = CodeVersion.objects.filter(project=job.project_id, digest=digest)
    name = rows.values_list("name", flat=True).first()
    return {"code": digest} if name is None else {"code": digest, "code_name": name}


def _data_lineage(version_id: int | None) -> dict[str, Any]:
    if version_id is None:
        return {}
    version = DatasetVersion.objects.select_related("dataset").filter(pk=version_id).first()
    if version is None:
        return {}
    return {
        "dataset": version.dataset.slug,
        "dataset_version": version.number,
        "dataset_digest": version.digest,
    }
