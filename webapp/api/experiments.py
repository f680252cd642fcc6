"""Experiments: specs in, revisions and plans out."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from jobs import access
from jobs.access import Action
from jobs.actions import experiments as actions
from jobs.contracts.problems import Problem
from jobs.models import Experiment, Revision
from jobs.queries import experiments as queries
from jobs.queries import plan
from jobs.states import JobState
from webapp.api import etags
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.pages import Page, Paging, cut
from webapp.api.shapes import Id, In, Json, Name, OneOf, Text, Time

router = Router()
Spec = Any
"""The experiment spec; `jobs.queries.plan` judges it, with a pointer to each thing that does not hold."""


class ExperimentIn(In):
    """A new experiment. With `draft` the spec is kept as it is, however unfinished."""

    project: str
    name: Name
    spec: Spec
    draft: bool = False
    tags: list[str] = Field(default_factory=list, max_length=20)
    notes: Text = ""


class Change(In):
    """What to change. A `spec` makes a revision if it differs from the newest."""

    name: Name | None = None
    spec: Spec = None
    draft: bool = False
    tags: list[str] | None = Field(None, max_length=20)
    notes: Text | None = None
    archived: bool | None = None
    version: int | None = Field(None, description="the version seen; like If-Match")


class CloneIn(In):
    """Where the copy goes and what it is called."""

    name: str = Field("", max_length=200)
    project: str | None = None


class Checked(In):
    """A body as for POST; only the spec decides what runs."""

    project: str
    spec: Spec
    name: str | None = None
    experiment: Id | None = Field(None, description="the one that is revised: its own runs time the plan")
    draft: bool = False
    tags: list[str] = Field(default_factory=list)
    notes: str = ""


class RevisionOut(Schema):
    """A frozen spec."""

    number: int
    digest: str
    spec: Json
    reason: str
    created_by: str
    created: Time


class ExperimentOut(Schema):
    """An experiment; `spec` is that of the newest revision, `draft` an unfinished one saved since."""

    id: int
    project: str
    name: str
    tags: list[str]
    notes: str
    archived: bool
    version: int
    revision: int | None
    digest: str | None
    spec: Json | None
    draft: Any
    last_job: int | None
    state: str | None
    best: Json | None
    created_by: str
    created: Time
    updated: Time


class Filters(Schema):
    """`?project=&q=&tag=&state=&created_by=&archived=`; `state` is that of the last job, or `none`."""

    project: str | None = None
    q: str = ""
    tag: str = ""
    state: Annotated[str, OneOf(["none", *JobState])] | None = None
    created_by: str = ""
    archived: Literal["true", "false", "all"] = "false"


def _show(experiment: Experiment, best: queries.Best | None = None) -> ExperimentOut:
    newest = experiment.revisions.order_by("-number").first()
    job = queries.root_jobs(experiment).first()
    return ExperimentOut(
        id=experiment.pk,
        project=experiment.project.slug,
        name=experiment.name,
        tags=experiment.tags,
        notes=experiment.notes,
        archived=experiment.archived,
        version=experiment.version,
        revision=newest.number if newest is not None else None,
        digest=newest.digest if newest is not None else None,
        spec=newest.spec_json if newest is not None else None,
        draft=experiment.draft,
        last_job=job.pk if job is not None else None,
        state=job.state if job is not None else None,
        best=vars(best) if best is not None else None,
        created_by=experiment.created_by.username,
        created=experiment.created,
        updated=experiment.updated,
    )


def _one(experiment: Experiment) -> ExperimentOut:
    return _show(experiment, queries.best_of([experiment]).get(experiment.pk))


def _revision(revision: Revision) -> RevisionOut:
    return RevisionOut(
        number=revision.number,
        digest=revision.digest,
        spec=revision.spec_json,
        reason=revision.reason,
        created_by=revision.created_by.username,
        created=revision.created,
    )


@router.get("/experiments", response=Page[ExperimentOut])
def list_experiments(
    request: HttpRequest, paging: Query[Paging], filters: Query[Filters]
) -> Page[ExperimentOut]:
    """List the experiments in sight, newest first; archived ones only if asked for."""
    project = access.get_project(actor(request), filters.project) if filters.project else None
    rows = queries.listed(
        actor(request),
        project=project,
        archived={"true": True, "false": False, "all": None}[filters.archived],
        text=filters.q,
        tag=filters.tag,
        state=filters.state or "",
        who=filters.created_by,
    )
    page = cut(rows, paging, lambda row: row, sorts=queries.SORTS)
    best = queries.best_of(page.items)
    return Page(items=[_show(row, best.get(row.pk)) for row in page.items], next=page.next)


@router.post("/experiments", response={201: ExperimentOut})
@idempotent
def create_experiment(
    request: HttpRequest, body: ExperimentIn, response: HttpResponse
) -> Status[ExperimentOut]:
    """Make an experiment and freeze its spec as the first revision."""
    project = access.get_project(actor(request), body.project, Action.WRITE)
    specs = {"draft": body.spec} if body.draft else {"spec": body.spec}
    experiment = actions.create(
        project, name=body.name, by=actor(request), tags=body.tags, notes=body.notes, **specs
    )
    etags.give(response, experiment.version)
    return Status(201, _one(experiment))


@router.post("/experiments/validate", response=Json)
def validate(request: HttpRequest, body: Checked) -> Json:
    """Judge a spec and plan what it would run: `{valid, errors, plan}`. Creates nothing."""
    project = access.get_project(actor(request), body.project)
    revised = access.get_experiment(actor(request), body.experiment) if body.experiment is not None else None
    verdict = plan.judge(project, body.spec, experiment=revised)
    found = list(verdict.problems)
    if body.name is not None and not 0 < len(body.name.strip()) <= 200:
        found.append(Problem("/name", "give the experiment a name of 1 to 200 characters"))
    return {
        "valid": not found,
        "errors": [{"pointer": problem.pointer, "message": problem.message} for problem in found],
        "plan": verdict.plan.model_dump(mode="json") if verdict.plan is not None else None,
    }


@router.get("/experiments/{id}", response=ExperimentOut)
def get_experiment(request: HttpRequest, id: Id, response: HttpResponse) -> ExperimentOut:  # noqa: A002
    """Return one experiment; its ETag goes into If-Match of a PATCH."""
    experiment = access.get_experiment(actor(request), id)
    etags.give(response, experiment.version)
    return _one(experiment)


@router.patch("/experiments/{id}", response=ExperimentOut)
def change_experiment(
    request: HttpRequest,
    id: Id,  # noqa: A002
    body: Change,
    response: HttpResponse,
) -> ExperimentOut:
    """Change what is given; a spec that differs becomes a new revision."""
    experiment = access.get_experiment(actor(request), id, Action.WRITE)
    etags.check(request, experiment.version)
    seen = experiment.version if "If-Match" in request.headers else body.version
    specs = {"draft": body.spec} if body.draft else {"spec": body.spec}
    given = {"name": body.name, "tags": body.tags, "notes": body.notes, **specs}
    if any(value is not None for value in given.values()):
        actions.change(experiment, by=actor(request), seen=seen, **given)
    if body.archived is not None:
        actions.archive(experiment, archived=body.archived, by=actor(request))
    etags.give(response, experiment.version)
    return _one(experiment)


@router.delete("/experiments/{id}", response={204: None})
def delete_experiment(request: HttpRequest, id: Id) -> Status[None]:  # noqa: A002
    """Delete an experiment with all its jobs; refused while one runs or a version came from it."""
    experiment = access.get_experiment(actor(request), id, Action.WRITE)
    etags.check(request, experiment.version)
    actions.delete(experiment, by=actor(request))
    return Status(204, None)


@router.get("/experiments/{id}/revisions", response=Page[RevisionOut])
def list_revisions(request: HttpRequest, id: Id, paging: Query[Paging]) -> Page[RevisionOut]:  # noqa: A002
    """List the frozen specs, newest first."""
    experiment = access.get_experiment(actor(request), id)
    rows = experiment.revisions.select_related("created_by")
    return cut(rows, paging, _revision, sorts={"number": "number"}, default="-number")


@router.post("/experiments/{id}/submit", response={202: Json})
@idempotent
def submit_experiment(request: HttpRequest, id: Id) -> Status[Json]:  # noqa: A002
    """Queue the experiment; returns its root job."""
    experiment = access.get_experiment(actor(request), id, Action.WRITE)
    return Status(202, {"job": actions.submit(experiment, by=actor(request)).pk})


@router.post("/experiments/{id}/clone", response={201: ExperimentOut})
@idempotent
def clone_experiment(
    request: HttpRequest,
    id: Id,  # noqa: A002
    response: HttpResponse,
    body: CloneIn | None = None,
) -> Status[ExperimentOut]:
    """Make a copy with the same spec and no jobs."""
    experiment = access.get_experiment(actor(request), id)
    wanted = body or CloneIn(name="", project=None)
    project = access.get_project(actor(request), wanted.project, Action.WRITE) if wanted.project else None
    copy = actions.clone(experiment, by=actor(request), name=wanted.name, project=project)
    etags.give(response, copy.version)
    return Status(201, _one(copy))
