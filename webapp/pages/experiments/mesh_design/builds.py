"""Builds own code for the mesh designer, which needs the model's variables."""

from jobs import access
from jobs.access import Action
from jobs.actions.code import dry_builds as actions
from jobs.answers.code.code import DryBuildOut
from jobs.errors import BadInput
from jobs.models import User
from jobs.queries.code import dry_builds as queries
from jobs.queries.code.dry_builds import DryBuildRequest
from jobs.queries.data import datasets
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.code_model import CodeModel
from webapp.pages.experiments.mesh_design.sources import Source


def build_state(source: Source, spec: ExperimentSpec) -> DryBuildOut | None:
    """Return the state of the dry build of own code; None for other models, or without data."""
    request = _request(source, spec)
    return None if request is None else queries.dry_build_out(request)


def start_build(user: User, source: Source, spec: ExperimentSpec) -> None:
    """Queue a dry build, also if the last one failed.

    Raises:
        Forbidden: the user may not run code in the project.
        BadInput: the spec has no own code, or no data that are ready.
    """
    access.require(user, source.project, Action.RUN_CODE)
    request = _request(source, spec)
    if request is None:
        message = "only own code is built, for a data set that is ready"
        raise BadInput(message, [Problem("/model", message)])
    actions.request_dry_build(request, by=user, again=True)


def _request(source: Source, spec: ExperimentSpec) -> DryBuildRequest | None:
    if not isinstance(spec.model, CodeModel) or spec.data is None:
        return None
    version = datasets.find_version(source.project, spec.data.dataset, spec.data.dataset_version)
    profile = version.profile if version is not None else None
    if version is None or profile is None:
        return None
    return queries.dry_build_request(source.project, spec, version, profile)
