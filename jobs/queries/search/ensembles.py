"""Chooses the trials that can be combined with a given one in an ensemble."""

from typing import NamedTuple

from jobs.kinds.rows import retraining_trials_of
from jobs.models import Job, Trial
from jobs.queries.code import dry_builds
from jobs.queries.search import outcomes
from jobs.states import TrialState

MAX_CANDIDATES = 8
"""How many of the best trials are candidates."""

PRESELECTED = 2
"""How many candidates are selected if the search has no ensemble yet."""


class Candidate(NamedTuple):
    """A trial that can be a member. `selected` is its check box's initial state."""

    trial: Trial
    selected: bool


def ineligibility_reason(trial: Trial) -> str:
    """Return the reason why a trial cannot be a member; empty if it can.

    A trial that failed after a rung, or when it was continued, still has its earlier score.
    """
    if trial.score is None:
        return f"trial {trial.number} is {trial.state} and has no score"
    if trial.state == TrialState.FAILED:
        return f"trial {trial.number} has failed; its score is from before the failure"
    return ""


def takes_members(search: Job) -> bool:
    """Return whether a search's models can be combined: Trainyard trains them, and they can be saved."""
    revision = search.revision
    if revision is None or "/after/ensemble" in revision.spec.model.info.refused:
        return False
    return not dry_builds.why_unsaved(search)


def can_join(trial: Trial) -> bool:
    """Return whether a trial can be an ensemble's member."""
    return not ineligibility_reason(trial) and takes_members(trial.job)


def ensemble_candidates(trial: Trial) -> list[Candidate]:
    """Return the trials that can be combined with `trial`: the best, then the newest ensemble's.

    Trials with the same values are left out.
    """
    search = trial.job
    ensembles = Job.objects.filter(retraining_trials_of([search.pk])).only("kind", "payload_json")
    newest = ensembles.order_by("-pk").first()
    selection = newest.payload.chosen_trials() if newest is not None else None
    members = set(selection.numbers) if selection is not None else set()
    # One more than needed, since `trial` itself may be among the best.
    best = outcomes.best_trials(search, limit=MAX_CANDIDATES + 1).exclude(values_digest=trial.values_digest)
    rows = list(best)[:MAX_CANDIDATES]
    unranked = members - {row.number for row in rows}
    earlier = search.trials.filter(number__in=unranked).exclude(values_digest=trial.values_digest)
    rows += [row for row in earlier.order_by("number") if not ineligibility_reason(row)]
    selected = members or {row.number for row in rows[:PRESELECTED]}
    return [Candidate(row, row.number in selected) for row in rows]
