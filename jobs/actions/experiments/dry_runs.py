"""Requests dry runs, which compare an experiment's precision with float32."""

from typing import Any

from jobs import access
from jobs.actions.runs import requested_jobs
from jobs.errors import BadInput
from jobs.models import Project, User
from jobs.queries.data import datasets
from jobs.queries.experiments import dry_runs
from jobs.queries.experiments.dry_runs import DryRunRequest
from jobs.queries.experiments.plan import validate_spec
from jobs.spec.problems import Problem

PRIORITY = 80
"""A person waits for the result in a form."""


def request_dry_run(
    project: Project, body: Any, steps: int, *, by: User, again: bool = False
) -> DryRunRequest:
    """Queue a dry run, unless the same has been completed or is open. Return the request.

    Args:
        project: where it runs.
        body: the experiment's spec as JSON.
        steps: the training steps with each precision.
        by: the acting user.
        again: whether to repeat one that has failed.

    Raises:
        Forbidden: `by` may not run jobs in the project, or no code.
        BadInput: the spec is invalid, or its precision is float32.
        QuotaReached: the project has too many unfinished jobs.
    """
    access.require(by, project, access.Action.WRITE)
    request = _checked_request(project, body, steps, by)
    payload, spec = request.payload, request.payload.spec
    if payload.code_digest() is not None:
        access.require(by, project, access.Action.RUN_CODE)
    requested_jobs.queue_once(
        request,
        by=by,
        again=again,
        priority=PRIORITY,
        audited_as="experiment.dry_run",
        details={"policy": spec.precision.policy},
        pool=spec.resources.pool,
        labels=spec.resources.labels or {},
        slots=spec.resources.slots,
    )
    return request


def _checked_request(project: Project, body: Any, steps: int, by: User) -> DryRunRequest:
    checked = validate_spec(project, body, by=by, with_plan=False)
    problems = list(checked.problems)
    spec = checked.spec
    if spec is not None and not problems:
        if spec.model.info.trains_itself or not spec.model.info.by_gradient:
            message = f"{spec.model.info.name} trains without a precision policy: nothing can be compared"
            problems.append(Problem("/spec/model", message))
        elif spec.precision.policy == "float32" and not spec.precision.overrides:
            message = "choose a policy or an override to compare with float32"
            problems.append(Problem("/spec/precision/policy", message))
    if problems or spec is None:
        raise BadInput(problems[0].message, problems)
    data = spec.required_data
    version = datasets.find_version(project, data.dataset, data.dataset_version)
    if version is None or version.profile is None:
        message = f"{project.slug} has no data set {data.dataset!r} that is ready"
        raise BadInput(message, [Problem("/spec/data/dataset", message)])
    return dry_runs.dry_run_request(project, spec, version, steps)
