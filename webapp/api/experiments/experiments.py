"""Operations on experiments: specs, revisions and plans."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions.experiments import experiments as actions
from jobs.actions.experiments.find_model import find_model, read_budget
from jobs.actions.storage import deletions
from jobs.answers.experiments.experiments import (
    ExperimentOut,
    FoundOut,
    RangeOut,
    RevisionOut,
    Spec,
    SpecProblemOut,
    ValidationOut,
)
from jobs.answers.runs.jobs import SubmittedOut
from jobs.queries.experiments import experiments as queries
from jobs.queries.experiments import plan
from jobs.queries.experiments.plan import resource_warnings
from jobs.spec.plan.find_model import FEWEST_TRIALS, MOST_MINUTES, MOST_TRIALS
from jobs.spec.problems import Problem
from jobs.spec.space.range_text import ranges_of
from jobs.states import JobState
from webapp.api import etags
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.paging import Page, Paging, paginate, paginate_bulk
from webapp.api.shapes import Id, In, Name, Number, OneOf, Text

router = Router()


class ExperimentIn(In):
    """A new experiment."""

    project: str
    name: Name
    spec: Spec
    draft: bool = Field(False, description="Save the spec without checking it.")
    tags: list[str] = Field(default_factory=list, max_length=20)
    notes: Text = ""


class ExperimentChange(In):
    """The experiment fields that can be changed."""

    name: Name | None = None
    spec: Spec | None = Field(None, description="Makes a new revision if it differs from the newest.")
    draft: bool = Field(False, description="Save the spec without checking it.")
    tags: list[str] | None = Field(None, max_length=20)
    notes: Text | None = None
    archived: bool | None = None
    version: int | None = Field(
        None, description="The version that the caller has read; another one is a 412. Same as If-Match."
    )


class CloneIn(In):
    """A copy's name and project."""

    name: str = Field("", max_length=200, description="Empty: derived from the original's name.")
    project: str | None = Field(None, description="null: the same project.")


class ValidationIn(In):
    """A spec to check; the other fields are as for a new experiment."""

    project: str
    spec: Spec
    name: str | None = None
    experiment: Id | None = Field(
        None, description="The experiment that is revised; its jobs improve the time estimate."
    )
    draft: bool = False
    tags: list[str] = Field(default_factory=list)
    notes: str = ""


class ExperimentFilter(Schema):
    """The list's filters."""

    project: str | None = None
    q: str = Field("", description="A part of the name or the notes.")
    tag: str = ""
    state: Annotated[str, OneOf(["none", *JobState])] | None = Field(
        None, description="The state of the last job; `none` if there is no job."
    )
    created_by: str = ""
    archived: Literal["true", "false", "all"] = "false"


class FindModelIn(In):
    """The data, the objective, and how long the search may take: either max_minutes or max_trials."""

    project: str
    dataset: str
    version: Number
    max_minutes: float | None = Field(None, gt=0, le=MOST_MINUTES)
    max_trials: int | None = Field(None, ge=FEWEST_TRIALS, le=MOST_TRIALS)
    name: str = Field("", max_length=200, description="Empty: made from the name of the data set.")
    objective: str = Field(
        "",
        max_length=200,
        description="`val_loss`, or another metric that the data's task has by default, such as `val_auc`. "
        "Empty: `val_loss` for a regression, else `val_accuracy`.",
    )
    register_as: str = Field(
        "",
        max_length=63,
        description="The model that gets the best model and the ensemble as versions. Empty: none.",
    )
    submit: bool = Field(True, description="False: create only the experiment.")


@router.get("/experiments", response=Page[ExperimentOut])
def list_experiments(
    request: HttpRequest, paging: Query[Paging], filters: Query[ExperimentFilter]
) -> Page[ExperimentOut]:
    """List the experiments in the caller's projects, newest first."""
    project = access.get_project(actor(request), filters.project) if filters.project else None
    rows = queries.experiments_with_state(
        actor(request),
        project=project,
        archived={"true": True, "false": False, "all": None}[filters.archived],
        text=filters.q,
        tag=filters.tag,
        state=filters.state or "",
        author=filters.created_by,
    )
    return paginate_bulk(Page[ExperimentOut], rows, paging, queries.experiments_out, sorts=queries.SORTS)


@router.post("/experiments", response={201: ExperimentOut})
@idempotent
def create_experiment(
    request: HttpRequest, body: ExperimentIn, response: HttpResponse
) -> Status[ExperimentOut]:
    """Create an experiment with its spec as the first revision."""
    project = access.get_project(actor(request), body.project, Action.WRITE)
    specs = {"draft": body.spec} if body.draft else {"spec": body.spec}
    experiment = actions.create(
        project, name=body.name, by=actor(request), tags=body.tags, notes=body.notes, **specs
    )
    etags.set_etag(response, experiment.version)
    return Status(201, queries.experiment_out(experiment))


@router.post("/experiments/validate", response=ValidationOut)
def validate_experiment(request: HttpRequest, body: ValidationIn) -> ValidationOut:
    """Check a spec and plan the jobs that it would run. Creates nothing."""
    project = access.get_project(actor(request), body.project)
    revised = access.get_experiment(actor(request), body.experiment) if body.experiment is not None else None
    checked = plan.validate_spec(project, body.spec, by=actor(request), experiment=revised)
    invalid = list(checked.problems)
    if body.name is not None and not 0 < len(body.name.strip()) <= 200:
        invalid.append(Problem("/name", "give the experiment a name of 1 to 200 characters"))
    errors = [SpecProblemOut(**problem._asdict()) for problem in invalid]
    ranges = [RangeOut.model_validate(read._asdict()) for read in ranges_of(body.spec)]
    return ValidationOut(valid=not invalid, errors=errors, plan=checked.plan, ranges=ranges)


@router.post("/experiments/find-model", response={202: FoundOut})
@idempotent
def find_good_model(request: HttpRequest, body: FindModelIn) -> Status[FoundOut]:
    """Search a good model over all templates that take the data. The response names experiment and job."""
    project = access.get_project(actor(request), body.project, Action.WRITE)
    version = access.get_dataset_version(actor(request), body.dataset, body.version, project)
    budget = read_budget(body.max_minutes, body.max_trials)
    started = find_model(
        project,
        version,
        budget,
        by=actor(request),
        name=body.name,
        objective=body.objective,
        register_as=body.register_as,
        submitted=body.submit,
    )
    job = started.job.pk if started.job is not None else None
    return Status(202, FoundOut(experiment=started.experiment.pk, job=job, left_out=list(started.left_out)))


@router.get("/experiments/{id}", response=ExperimentOut)
def get_experiment(request: HttpRequest, id: Id, response: HttpResponse) -> ExperimentOut:  # noqa: A002
    """Return an experiment. Its ETag goes into a PATCH's If-Match."""
    experiment = access.get_experiment(actor(request), id)
    etags.set_etag(response, experiment.version)
    return queries.experiment_out(experiment)


@router.patch("/experiments/{id}", response=ExperimentOut)
def change_experiment(
    request: HttpRequest,
    id: Id,  # noqa: A002
    body: ExperimentChange,
    response: HttpResponse,
) -> ExperimentOut:
    """Change an experiment. A spec that differs becomes a new revision."""
    experiment = access.get_experiment(actor(request), id, Action.WRITE)
    etags.require_match(request, experiment.version)
    # The action compares the version again when it writes, since another request may write in between.
    seen = experiment.version if "If-Match" in request.headers else body.version
    specs = {"draft": body.spec} if body.draft else {"spec": body.spec}
    changes: dict[str, Any] = {"name": body.name, "tags": body.tags, "notes": body.notes, **specs}
    actions.change_all(experiment, by=actor(request), seen=seen, archived=body.archived, **changes)
    etags.set_etag(response, experiment.version)
    return queries.experiment_out(experiment)


@router.delete("/experiments/{id}", response={204: None})
def delete_experiment(request: HttpRequest, id: Id) -> Status[None]:  # noqa: A002
    """Delete an experiment with its jobs. Refused while a job runs or a model version came from one."""
    experiment = access.get_experiment(actor(request), id)
    etags.require_match(request, experiment.version)
    deletions.delete(experiment, by=actor(request))
    return Status(204, None)


@router.get("/experiments/{id}/revisions", response=Page[RevisionOut])
def list_revisions(request: HttpRequest, id: Id, paging: Query[Paging]) -> Page[RevisionOut]:  # noqa: A002
    """List an experiment's revisions, newest first."""
    experiment = access.get_experiment(actor(request), id)
    rows = experiment.revisions.select_related("created_by")
    return paginate(
        Page[RevisionOut],
        rows,
        paging,
        queries.revision_out,
        sorts={"number": "number"},
        default="-number",
    )


@router.post("/experiments/{id}/submit", response={202: SubmittedOut})
@idempotent
def submit_experiment(request: HttpRequest, id: Id) -> Status[SubmittedOut]:  # noqa: A002
    """Queue an experiment. The response names its root job."""
    experiment = access.get_experiment(actor(request), id, Action.WRITE)
    job = actions.submit(experiment, by=actor(request))
    warnings = [
        {"pointer": problem.pointer, "message": problem.message} for problem in resource_warnings(job)
    ]
    return Status(202, SubmittedOut(job=job.pk, warnings=warnings))


@router.post("/experiments/{id}/clone", response={201: ExperimentOut})
@idempotent
def clone_experiment(
    request: HttpRequest,
    id: Id,  # noqa: A002
    response: HttpResponse,
    body: CloneIn | None = None,
) -> Status[ExperimentOut]:
    """Copy an experiment with its spec and without its jobs."""
    experiment = access.get_experiment(actor(request), id)
    options = body or CloneIn(name="", project=None)
    project = access.get_project(actor(request), options.project, Action.WRITE) if options.project else None
    copy = actions.clone(experiment, by=actor(request), name=options.name, project=project)
    etags.set_etag(response, copy.version)
    return Status(201, queries.experiment_out(copy))
