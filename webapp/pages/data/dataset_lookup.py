"""Finds the data set in an address. `?project=` names its project."""

from jobs import access
from jobs.access import Action
from jobs.errors import NotFound
from jobs.models import Dataset, DatasetVersion, Project
from webapp.pages.shortcuts import Request, writable_projects


def dataset_of(request: Request, slug: str, needed: Action = Action.VIEW) -> Dataset:
    """Return a data set with which the user may do the needed action."""
    home = request.GET.get("project")
    project = access.get_project(request.user, home) if home else None
    return access.get_dataset(request.user, slug, project, needed)


def version_of(dataset: Dataset, number: int) -> DatasetVersion:
    """Return a data set version that the user may see.

    Raises:
        NotFound: the data set has no version with this number.
    """
    version = dataset.versions.select_related("created_by", "upload").filter(number=number).first()
    if version is None:
        raise NotFound(f"Data set {dataset.slug!r} has no version {number}.")
    return version


def home_of(dataset: Dataset) -> str:
    """Return the slug of a data set's project; empty if it is bundled."""
    return dataset.project.slug if dataset.project is not None else ""


def project_for(request: Request, dataset: Dataset) -> Project | None:
    """Return the project for new experiments and jobs on a data set; None if the user may make none."""
    mine = list(writable_projects(request.user))
    if dataset.project is not None:
        return next((project for project in mine if project.pk == dataset.project_id), None)
    current = request.session.get("project")
    return next((project for project in mine if project.slug == current), mine[0] if mine else None)
