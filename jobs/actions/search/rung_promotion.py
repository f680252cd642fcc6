"""Promotes or prunes trials when a rung ends, and records why a pruner stopped a trial."""

from typing import Any

from jobs import clock
from jobs.actions.transition import move_trial
from jobs.messages.suggest import Dropped, Suggestion
from jobs.models import Job, Trial, TrialDecision
from jobs.queries.search import outcomes
from jobs.spec.sections.pruning import Verdict
from jobs.states import TrialState


def promote_trial(root: Job, suggestion: Suggestion) -> None:
    """Queue a waiting trial for its next rung. Do nothing if it no longer waits."""
    trial = _waiting_trial(root, suggestion.promotes)
    if trial is None:
        return
    _record_decision(root, trial, {**suggestion.saw, "promoted": True})
    trial.executions.filter(state=TrialState.PAUSED).update(state=TrialState.QUEUED)
    # The trial's times belong to its current rung; the wait between rungs does not count.
    rung: dict[str, Any] = {"rung": suggestion.rung, "epochs": suggestion.epochs}
    # The attempt of the previous rung may still run other trials, so it must release this one.
    move_trial(trial, TrialState.QUEUED, **rung, attempt=0, started=None, finished=None)


def prune_trial(root: Job, dropped: Dropped) -> None:
    """Prune a waiting trial that will never be promoted. Do nothing if it no longer waits."""
    trial = _waiting_trial(root, dropped.trial)
    if trial is None:
        return
    _record_decision(root, trial, {**dropped.saw, "promoted": False})
    trial.executions.filter(state=TrialState.PAUSED).update(state=TrialState.PRUNED)
    move_trial(trial, TrialState.PRUNED, finished=trial.finished or clock.now())


def record_pruning(trial: Trial, verdict: Verdict | None) -> None:
    """Store why a pruner stopped a trial. Its unfinished executions are pruned."""
    trial.executions.incomplete().update(state=TrialState.PRUNED)
    if verdict is not None:
        saw = {"promoted": False, "cutoff": verdict.threshold, "of": verdict.of}
        seen = {"epoch": verdict.epoch, "value": verdict.value}
        TrialDecision.objects.get_or_create(
            trial=trial,
            rule=verdict.rule,
            rung=verdict.rung,
            defaults={**seen, "saw": {**saw, "execution": verdict.execution}},
        )


def _waiting_trial(root: Job, number: int | None) -> Trial | None:
    """Return the trial if it still waits: it may have been stopped while the suggestion was computed."""
    # Locked, so that a user cannot stop it between this check and its change.
    trial = root.trials.select_for_update(of=("self",), no_key=True).filter(number=number or 0).first()
    return trial if trial is not None and trial.waits_at_rung else None


def _record_decision(root: Job, trial: Trial, saw: dict[str, Any]) -> None:
    TrialDecision.objects.get_or_create(
        trial=trial,
        rule=outcomes.search_of(root).algorithm,
        rung=trial.rung,
        defaults={"epoch": trial.epochs, "value": trial.rungs[trial.rung], "saw": saw},
    )
