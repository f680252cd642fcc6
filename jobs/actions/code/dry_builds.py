"""Requests dry builds of own code, and completes the searches that wait for them."""

from typing import Any

from django.db import transaction

from jobs import access
from jobs.actions.experiments import experiments
from jobs.actions.runs import events, pipeline, requested_jobs, submit
from jobs.actions.runs.payloads import change_payload
from jobs.errors import BadInput, Conflict
from jobs.models import DatasetVersion, Job, Revision, User
from jobs.queries.code import dry_builds
from jobs.queries.code.dry_builds import DryBuildRequest
from jobs.queries.search.algorithm_state import algorithm_state
from jobs.queries.search.waiting import BUILDING_FIRST
from jobs.spec.checks.dry_build import EMPTY_SPACE, BuiltModel, complete_spec, problems_of
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.space.search_space import Space
from jobs.states import FINAL, JobState

PRIORITY = 80
"""A person waits for the result in a form."""
FROM_CODE = "the space that the code declares"


def request_dry_build(request: DryBuildRequest, *, by: User, again: bool = False) -> None:
    """Queue a dry build, unless one has been completed or is open.

    Args:
        request: the model.
        by: the acting user.
        again: whether to repeat one that has failed.

    Raises:
        Forbidden: `by` may not run code in the project.
        BadInput: the code has no such entry, or its constructor no such arguments.
        QuotaReached: the project has too many unfinished jobs.
    """
    project, payload = request.project, request.payload
    access.require(by, project, access.Action.RUN_CODE)
    if problems := list(dry_builds.model_problems(project, payload.model)):
        raise BadInput(
            problems[0].message, [Problem(problem.pointer, problem.message) for problem in problems]
        )
    requested_jobs.queue_once(
        request,
        by=by,
        again=again,
        priority=PRIORITY,
        audited_as="code.dry_build",
        details={"code": payload.model.digest},
    )


def advance_dry_build(root: Job) -> bool:
    """Queue or apply a search's dry build. Return whether its space is complete.

    A search with own code that was submitted before a dry build was completed waits for one, and continues
    with a revision that has the whole space.
    """
    if algorithm_state(root).has_whole_space:
        return True
    revision = revision_of(root)
    spec = revision.spec
    if not isinstance(spec.model, CodeModel):
        return True
    version = DatasetVersion.objects.filter(pk=root.payload.dataset_version or 0).first()
    profile = version.profile if version is not None else None
    if version is None or profile is None:
        raise Conflict(f"the dataset version that job {root.pk} reads does not exist")
    request = dry_builds.dry_build_request(revision.experiment.project, spec, version, profile)
    built_model = dry_builds.build_result(request)
    if built_model is None:
        _build_first(root, request)
        return False
    return _complete_space(root, spec, built_model)


def wake_searches(job: Job) -> None:
    """Advance the searches that wait for a dry build, once the transaction with its end is committed."""
    # Only then it counts as completed or failed. If this fails, the scheduler advances them a little later.
    transaction.on_commit(lambda: _advance_waiting(job), robust=True)


def _advance_waiting(job: Job) -> None:
    searches = Job.objects.roots().unfinished().filter(project=job.project_id)
    for root in searches.filter(why_waiting=_reason_to_wait(job)).order_by("pk"):
        pipeline.advance_one(root)


def _reason_to_wait(job: Job) -> str:
    """Return why a search waits for its dry build; it names the job."""
    return f"{BUILDING_FIRST}{job.pk}."


def revision_of(root: Job) -> Revision:
    """Return a root's revision.

    Raises:
        Conflict: it has none.
    """
    if root.revision is None:
        raise Conflict(f"job {root.pk} does not come from an experiment")
    return root.revision


def _build_first(root: Job, request: DryBuildRequest) -> None:
    """Queue a search's dry build, unless one is open. A failed one fails the search."""
    rows = request.jobs
    job = rows.exclude(state__in=FINAL).first() or rows.first()
    # One that failed before the search was queued, or queued again, is repeated.
    if job is None or (job.state in FINAL and job.created < (root.queued or root.created)):
        job = submit.queue(
            request.payload,
            project=root.project,
            title=request.title,
            pool=root.pool,
            labels=root.labels,
            priority=root.priority,
            max_restarts=1,
            created_by=root.created_by,
        )
    elif job.state in FINAL:
        error: dict[str, Any] = job.error or {"code": "stopped", "message": f"the dry build was {job.state}"}
        pipeline.fail(root, {**error, "message": f"the dry build (job {job.pk}): {error.get('message', '')}"})
        return
    reason = _reason_to_wait(job)
    if root.why_waiting != reason:
        Job.objects.filter(pk=root.pk).update(why_waiting=reason)


def _complete_space(root: Job, spec: ExperimentSpec, built_model: BuiltModel) -> bool:
    """Continue a search with its code's whole space. Return whether it has one."""
    problems = list(problems_of(spec, built_model))
    if problems:
        code = "empty_space" if problems[0].message == EMPTY_SPACE else "bad_spec"
        message = "; ".join(f"{problem.pointer[1:]}: {problem.message}" for problem in problems)
        pipeline.fail(root, {"code": code, "message": message})
        return False
    old = revision_of(root)
    by = root.created_by or old.created_by
    new = experiments.freeze(old.experiment, complete_spec(spec, built_model), by=by, reason=FROM_CODE)
    if new.pk != old.pk:
        text = f"{len(built_model.space)} hyperparameters were found by the dry build"
        body = events.event("revised", root, revision=new.number, by=by.username, changes=[text])
        events.append(root.root_id_or_self, [body])
        root.revision = new
    root.why_waiting = ""
    root.save(update_fields=["revision", "why_waiting"])
    change_payload(root, has_whole_space=True)
    return True


def add_to_space(search: Job, rows: Space, trial: int) -> None:
    """Add hyperparameters that a trial has found to its code's dry build, inside the caller's transaction.

    The next experiment with this code begins with the whole space.

    Args:
        search: the trial's search.
        rows: the hyperparameters.
        trial: its number.
    """
    request = dry_builds.request_of_job(search)
    job = None if request is None else request.jobs.filter(state=JobState.COMPLETED).first()
    if job is None:
        return
    # Trials of several searches may find some at the same time.
    job = Job.objects.locked().get(pk=job.pk)
    built = dry_builds.result_of_job(job)
    names = {row.name for row in built.space}
    new = tuple(row for row in rows if row.name not in names)
    if not new:
        return
    found = ", ".join(row.name for row in new)
    note = f"not found by the dry build, but by trial {trial} of search {search.pk}: {found}"
    whole = built.model_copy(update={"space": (*built.space, *new), "notes": (*built.notes, note)})
    job.results_json = job.results.with_fields(built=whole).to_json()
    job.save(update_fields=["results_json"])
