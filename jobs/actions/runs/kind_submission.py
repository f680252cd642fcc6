"""Queues the jobs that users may submit directly, without an experiment."""

from typing import Any

from django.db import transaction
from pydantic import ValidationError

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.actions.runs.kind_actions import actions_for
from jobs.errors import BadInput
from jobs.kinds.base import Facts, Payload
from jobs.kinds.inputs import input_model, submittable_kinds
from jobs.models import Job, Project, User
from jobs.spec.problems import Problem, problems


def submit_kind(project: Project, kind: str, sent: Any, *, by: User) -> Job:
    """Queue a job with a kind and a payload that a user sent.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        BadInput: the kind cannot be submitted directly, or the payload is invalid; has a problem for each
            invalid field.
        QuotaReached: the project has too many unfinished jobs.
    """
    access.require(by, project, access.Action.WRITE)
    facts = _submittable_kind(kind)
    payload = actions_for(kind).accept(_read_payload(facts, sent), project=project, by=by)
    with transaction.atomic():
        quotas.require_room_for_job(project)
        job = submit.queue(payload, project=project, title=facts.title, created_by=by)
        audit.record("job.submit", f"job:{job.pk}", by=by, project=project, kind=kind)
    return job


def _submittable_kind(kind: str) -> Facts:
    facts_by_name = {facts.name: facts for facts in submittable_kinds()}
    if kind not in facts_by_name:
        names = ", ".join(facts_by_name) or "none"
        message = f"jobs of kind {kind!r} cannot be submitted directly; kinds that can: {names}"
        raise BadInput(message, [Problem("/kind", message)])
    return facts_by_name[kind]


def _read_payload(facts: Facts, sent: Any) -> Payload:
    try:
        checked = input_model(facts.payload).model_validate(sent)
        return facts.payload.model_validate(dict(checked))
    except ValidationError as error:
        field_problems = problems(error, sent, "/payload")
        raise BadInput(field_problems[0].message, field_problems) from error
