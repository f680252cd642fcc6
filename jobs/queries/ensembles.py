"""Which trials go together with one: what is offered where a trial joins an ensemble."""

from typing import NamedTuple

from jobs.models import Job, Trial
from jobs.queries import outcomes
from jobs.states import TrialState

OFFERED = 8
"""So many of the best trials are offered."""

USUAL = 2
"""So many of them are taken where nobody has chosen yet."""


class Offer(NamedTuple):
    """A trial that may join; `taken` if it is in the newest ensemble or, where there is none, proposed."""

    trial: Trial
    taken: bool


def hindrance(trial: Trial) -> str:
    """Return why a trial can be no member, empty if it can.

    One that was promoted and then failed keeps the score of its last rung.
    """
    if trial.score is None:
        return f"trial {trial.number} is {trial.state} and has no score"
    if trial.state == TrialState.FAILED:
        return f"trial {trial.number} has failed; its score is from before that"
    return ""


def may_join(trial: Trial) -> bool:
    """Say whether a trial can be a member, and its search has an experiment."""
    return not hindrance(trial) and trial.job.revision is not None


def offers(trial: Trial) -> list[Offer]:
    """Return the trials that may join one, best first, none of which has its values."""
    search = trial.job
    newest = _newest(search)
    best = outcomes.best_trials(search, limit=OFFERED + 1).exclude(values_digest=trial.values_digest)
    rows = list(best)[:OFFERED]
    listed = {row.number for row in rows}
    earlier = search.trials.filter(number__in=newest - listed).exclude(values_digest=trial.values_digest)
    rows += [row for row in earlier.order_by("number") if not hindrance(row)]
    proposed = newest or {row.number for row in rows[:USUAL]}
    return [Offer(row, row.number in proposed) for row in rows]


def _newest(search: Job) -> set[int]:
    """Return the numbers of the trials of the newest ensemble that somebody made of a search."""
    made = Job.objects.ensembles_of(search.pk).only("kind", "payload_json")
    newest = made.order_by("-pk").first()
    chosen = newest.payload.chosen_trials() if newest is not None else None
    return set(chosen.numbers) if chosen is not None else set()
