"""Finds the experiment that an address names."""

from jobs import access
from jobs.access import Action
from jobs.errors import NotFound
from jobs.models import Experiment
from webapp.pages.shortcuts import (
    Request,
)


def experiment_in_project(
    request: Request,
    project: str,
    id: int,  # noqa: A002
    needed: Action = Action.VIEW,
) -> Experiment:
    """Return an experiment in the project that the address names.

    Raises:
        NotFound: the experiment belongs to another project.
    """
    experiment = access.get_experiment(request.user, id, needed)
    if experiment.project.slug != project:
        raise NotFound(f"Project {project!r} has no experiment {id}.")
    return experiment
