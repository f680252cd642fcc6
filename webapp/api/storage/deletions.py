"""Previews deletions, and restores deleted objects.

The resources' own modules delete: one module has all methods on a path.
"""

from django.http import HttpRequest
from ninja import Query, Router

from jobs import access
from jobs.actions.storage import deletions as actions
from jobs.answers.code.code import CodeVersionOut
from jobs.answers.data.datasets import DatasetOut
from jobs.answers.experiments.experiments import ExperimentOut
from jobs.answers.people.projects import ProjectOut
from jobs.answers.registry.registry import VersionOut
from jobs.answers.runs.jobs import JobOut
from jobs.answers.storage.deletions import DeletionOut, DeletionPreviewOut
from jobs.models import Dataset, Deletion, Project
from jobs.queries.code import code as code_queries
from jobs.queries.data import datasets
from jobs.queries.experiments import experiments
from jobs.queries.people import projects
from jobs.queries.registry import registry
from jobs.queries.runs import jobs
from jobs.queries.storage import deletions as queries
from jobs.queries.storage.deletion_scope import Deletable
from webapp.api.auth import actor
from webapp.api.paging import Page, Paging, paginate
from webapp.api.shapes import Id, Number

router = Router()
Kind = Deletion.Kind


def _preview(request: HttpRequest, row: Deletable) -> DeletionPreviewOut:
    actions.require_deletable(row, by=actor(request))
    return queries.preview_out(row)


def _restore(request: HttpRequest, kind: Deletion.Kind, **path: str | int | None) -> Project:
    """Restore a row, and return its project."""
    user = actor(request)
    deletion = access.get_deletion(user, kind, queries.find_deletion(user, kind, **path))
    actions.restore(deletion, by=user)
    return deletion.project


@router.get("/deletions", response=Page[DeletionOut])
def list_deletions(request: HttpRequest, paging: Query[Paging]) -> Page[DeletionOut]:
    """List the deletions that the caller may undo, newest first."""
    return paginate(
        Page[DeletionOut], queries.restorable_deletions(actor(request)), paging, queries.deletion_out
    )


@router.get("/projects/{slug}/deletion", response=DeletionPreviewOut)
def preview_project_deletion(request: HttpRequest, slug: str) -> DeletionPreviewOut:
    """Return what deleting a project would take away."""
    return _preview(request, access.get_project(actor(request), slug))


@router.post("/projects/{slug}/restore", response=ProjectOut)
def restore_project(request: HttpRequest, slug: str) -> ProjectOut:
    """Restore a project that was deleted in the last 7 days."""
    _restore(request, Kind.PROJECT, slug=slug)
    return projects.project_out(access.get_project(actor(request), slug), actor(request))


@router.get("/datasets/{slug}/deletion", response=DeletionPreviewOut)
def preview_dataset_deletion(
    request: HttpRequest, slug: str, project: str | None = None
) -> DeletionPreviewOut:
    """Return what deleting a data set would take away."""
    return _preview(request, _dataset(request, slug, project))


@router.post("/datasets/{slug}/restore", response=DatasetOut)
def restore_dataset(request: HttpRequest, slug: str, project: str | None = None) -> DatasetOut:
    """Restore a data set that was deleted in the last 7 days."""
    home = access.get_project(actor(request), project) if project else None
    home = _restore(request, Kind.DATASET, slug=slug, **({"project": home.pk} if home else {}))
    return datasets.dataset_out(access.get_dataset(actor(request), slug, home))


def _dataset(request: HttpRequest, slug: str, project: str | None) -> Dataset:
    home = access.get_project(actor(request), project) if project else None
    return access.get_dataset(actor(request), slug, home)


@router.get("/code/{code}/deletion", response=DeletionPreviewOut)
def preview_code_deletion(request: HttpRequest, code: str, project: str | None = None) -> DeletionPreviewOut:
    """Return what deleting a code version would take away."""
    home = access.get_project(actor(request), project) if project else None
    return _preview(request, access.get_code(actor(request), code, home))


@router.post("/code/{code}/restore", response=CodeVersionOut)
def restore_code(request: HttpRequest, code: str, project: str | None = None) -> CodeVersionOut:
    """Restore a code version that was deleted in the last 7 days."""
    home = access.get_project(actor(request), project) if project else None
    home = _restore(request, Kind.CODE, digest=code, **({"project": home.pk} if home else {}))
    return code_queries.version_out(access.get_code(actor(request), code, home))


@router.get("/experiments/{id}/deletion", response=DeletionPreviewOut)
def preview_experiment_deletion(request: HttpRequest, id: Id) -> DeletionPreviewOut:  # noqa: A002
    """Return what deleting an experiment would take away."""
    return _preview(request, access.get_experiment(actor(request), id))


@router.post("/experiments/{id}/restore", response=ExperimentOut)
def restore_experiment(request: HttpRequest, id: Id) -> ExperimentOut:  # noqa: A002
    """Restore an experiment that was deleted in the last 7 days, with its jobs."""
    _restore(request, Kind.EXPERIMENT, pk=id)
    return experiments.experiment_out(access.get_experiment(actor(request), id))


@router.get("/jobs/{int:job_id}/deletion", response=DeletionPreviewOut)
def preview_job_deletion(request: HttpRequest, job_id: Id) -> DeletionPreviewOut:
    """Return what deleting a job would take away."""
    return _preview(request, access.get_job(actor(request), job_id))


@router.post("/jobs/{int:job_id}/restore", response=JobOut)
def restore_job(request: HttpRequest, job_id: Id) -> JobOut:
    """Restore a job that was deleted in the last 7 days."""
    _restore(request, Kind.JOB, pk=job_id)
    return jobs.job_out(access.get_job(actor(request), job_id))


@router.get("/models/{name}/versions/{number}/deletion", response=DeletionPreviewOut)
def preview_version_deletion(request: HttpRequest, name: str, number: Number) -> DeletionPreviewOut:
    """Return what deleting a model version would take away."""
    return _preview(request, access.get_version(actor(request), name, number))


@router.post("/models/{name}/versions/{number}/restore", response=VersionOut)
def restore_model_version(request: HttpRequest, name: str, number: Number) -> VersionOut:
    """Restore a version that was deleted in the last 7 days."""
    _restore(request, Kind.VERSION, model__name=name, number=number)
    return registry.version_out(access.get_version(actor(request), name, number))
