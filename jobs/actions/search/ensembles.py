"""Submits ensembles from chosen trials, in addition to a spec's ensemble from the best trials."""

from collections.abc import Sequence

from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.code import own_code
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.errors import BadInput, Conflict
from jobs.kinds.base import ChosenTrial
from jobs.kinds.chosen_ensemble.payload import ChosenEnsemblePayload
from jobs.models import Job, Trial, User
from jobs.queries.code import dry_builds
from jobs.queries.search import ensembles as queries
from jobs.spec.problems import Problem

MIN_TRIALS, MAX_TRIALS = 2, 100
"""How many trials an ensemble may have; `after.retrain.top` has the same maximum."""

MAX_LISTED = 8
"""An ensemble's title lists up to this many trial numbers."""


def queue_ensemble(search: Job, numbers: Sequence[int], *, by: User) -> Job:
    """Queue a job that retrains these trials and pools their models.

    The search may be running or final; it does not change.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        Conflict: the job is not a search, does not come from an experiment, or its models cannot be combined.
        BadInput: a trial cannot be a member, or there are too few or too many.
    """
    payload = ensemble_payload(search, numbers, by=by)
    return queue_payload(payload, like=search, by=by)


def ensemble_payload(search: Job, numbers: Sequence[int], *, by: User) -> ChosenEnsemblePayload:
    """Return the payload for an ensemble from these trials.

    Raises:
        Forbidden, Conflict, BadInput: as `queue_ensemble`.
    """
    access.require(by, search.project, access.Action.WRITE)
    if not search.facts.has_trials:
        raise Conflict(f"job {search.pk} ({search.facts.noun}) is not a search")
    if search.revision is None:
        raise Conflict(f"job {search.pk} does not come from an experiment")
    if (reason := search.revision.spec.model.info.refused.get("/after/ensemble")) is not None:
        raise Conflict(f"the models of search {search.pk} cannot be combined, since {reason}")
    if unsaved := dry_builds.why_unsaved(search):
        raise Conflict(f"the models of search {search.pk} cannot be combined: {unsaved}")
    unique = sorted(set(numbers))
    if not MIN_TRIALS <= len(unique) <= MAX_TRIALS:
        raise _refusal(
            f"an ensemble needs {MIN_TRIALS} to {MAX_TRIALS} different trials; {len(unique)} given"
        )
    rows = list(search.trials.filter(number__in=unique).order_by("number"))
    if missing := set(unique) - {trial.number for trial in rows}:
        raise _refusal(f"job {search.pk} has no trial {min(missing)}")
    _require_members(rows)
    chosen = tuple(ChosenTrial(trial=trial.number, values=trial.values) for trial in rows)
    return ChosenEnsemblePayload(search=search.pk, chosen=chosen)


def queue_payload(payload: ChosenEnsemblePayload, *, like: Job, by: User) -> Job:
    """Queue the job that retrains a search's chosen trials and pools them.

    It copies experiment, revision and resources from `like`, the search or an earlier ensemble.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        QuotaReached: the project has too many unfinished jobs.
    """
    own_code.require_right(by, like.project, like.revision)
    numbers = [member.trial for member in payload.chosen]
    trials = (
        f"trials {', '.join(map(str, numbers))}" if len(numbers) <= MAX_LISTED else f"{len(numbers)} trials"
    )
    with transaction.atomic():
        if like.project is not None:
            quotas.require_room_for_job(like.project)
        job = submit.queue(
            payload.changed(
                dataset_version=like.payload.dataset_version,
                failing=None,
                passes_batch_size=like.payload.passes_batch_size,
            ),
            project=like.project,
            experiment=like.experiment,
            revision=like.revision,
            title=f"Ensemble of {trials}",
            pool=like.pool,
            labels=like.labels,
            priority=like.priority,
            slots=like.slots,
            max_restarts=like.max_restarts,
            created_by=by,
        )
        audit.record("job.ensemble", f"job:{job.pk}", by=by, project=like.project, trials=numbers)
    return job


def _require_members(trials: Sequence[Trial]) -> None:
    """Refuse trials without a usable score, and trials with the same values."""
    first: dict[str, Trial] = {}
    for trial in trials:
        if reason := queries.ineligibility_reason(trial):
            raise _refusal(reason)
        other = first.setdefault(trial.values_digest, trial)
        if other is not trial:
            raise _refusal(
                f"trials {other.number} and {trial.number} have the same values: choose one of them"
            )


def _refusal(message: str) -> BadInput:
    return BadInput(message, [Problem("/trials", message)])
