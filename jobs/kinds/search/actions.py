"""Implements searches: requests and plans their trials, and starts the steps after them."""

from typing import Any

from django.db.models import Prefetch

from jobs import clock
from jobs.actions.code import dry_builds
from jobs.actions.runs import pipeline, submit
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.tasks import checkpoint_folders, dataset_if_any, spec_of
from jobs.actions.search import early_end, suggest
from jobs.kinds.roots import RootResult
from jobs.kinds.search.facts import SEARCH
from jobs.kinds.search.payload import SearchPayload
from jobs.messages.training import ExecutionPlan, TrialPlan, TrialTask
from jobs.models import Attempt, Checkpoint, Execution, Job, User
from jobs.queries.runs.earlier_trainings import EarlierTrainings, earlier_trainings
from jobs.queries.search import baseline, learning_curves, outcomes, search_time
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.evaluation import Turn
from jobs.spec.space.values import apply_values
from jobs.states import TRIAL_FINAL


class SearchActions(KindActions[SearchPayload, RootResult]):
    """A search creates trials until its algorithm or budget is exhausted; its best trials are retrained."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> TrialTask:
        """Return the task: the attempt's trials, each with its unfinished executions."""
        checkpoints = Checkpoint.objects.kept().order_by("-pk")
        trials = (
            attempt.trials.exclude(state__in=TRIAL_FINAL)
            .order_by("number")
            .prefetch_related(
                Prefetch("executions", Execution.objects.incomplete().order_by("number"), to_attr="todo"),
                Prefetch("checkpoints", checkpoints, to_attr="kept"),
            )
        )
        # With the hyperparameters that earlier trials have found.
        search = outcomes.search_of(attempt.job)
        spec = spec_of(attempt.job).model_copy(update={"search": search})
        top = outcomes.top_rung(attempt.job)
        earlier = earlier_trainings(attempt)
        return TrialTask(
            **common,
            spec=spec,
            objective=outcomes.objective_of(attempt.job),
            dataset=dataset_if_any(attempt.job),
            trials=tuple(_trial_plan(trial, spec, top, attempt.job, earlier) for trial in trials),
            curves=learning_curves.curves_of_search(attempt.job),
        )

    def advance(self, root: Job) -> None:
        """Request the trials that are still needed; once all are final, create the next step's jobs."""
        if not dry_builds.advance_dry_build(root):
            return
        search = outcomes.search_of(root)
        # Without a score there is nothing to continue with: the first trial ends in any case.
        if _is_time_over(root) and outcomes.best_trials(root, limit=1):
            early_end.begin_early_end(root, reason="max_minutes")
        if root.payload.finishing:
            pipeline.stop_waiting_trials(root)
            self._follow(root)
        elif (error := pipeline.fatal_error(root)) is not None:
            pipeline.fail(root, error)
        elif pipeline.trials_keep_failing(root, search.max_consecutive_failures):
            pipeline.give_up(root)
        elif not suggest.algorithm_has_ended(root, search):
            suggest.make_first_trials(root, search)
            suggest.request_suggestions(root, search)
        else:
            self._follow(root)

    def _follow(self, root: Job) -> None:
        """Create the next step's jobs once all trials are final."""
        if root.trials.unfinished().exists():
            return
        if outcomes.best_trials(root, limit=1):
            pipeline.start_next_step(root)
        else:
            pipeline.end_without_trial(root)

    def clone(self, job: Job, *, by: User, registers: bool) -> Job:
        """Queue the same revision again."""
        return submit.resubmit(job, by=by, registers=registers)


def _is_time_over(root: Job) -> bool:
    # Few searches have a limit; without one, this costs no statement.
    if root.payload.finishing or search_time.seconds_left(root, clock.estimate()) != 0.0:
        return False
    return not root.children.exists()


# `trial` is a Trial. Its type is Any because mypy does not know the attributes that `Prefetch` adds.
def _trial_plan(
    trial: Any, spec: ExperimentSpec, top: int | None, root: Job, earlier: EarlierTrainings
) -> TrialPlan:
    """Return a trial's plan with its open executions as `todo` and its checkpoints as `kept`.

    The trial waits when a rung ends, except the highest, which ends at epoch `top`.
    """
    applied = apply_values(spec, trial.values)
    if trial.until is not None:
        # A continued trial trains to the last epoch that its user chose, without early stopping.
        fit = applied.fit.model_copy(update={"epochs": trial.until, "early_stopping": None})
        applied = applied.model_copy(update={"fit": fit})
    return TrialPlan(
        number=trial.number,
        values=trial.values,
        spec=applied,
        executions=tuple(
            ExecutionPlan(
                execution=execution.number,
                seed=execution.seed,
                repeat=execution.repeat,
                fold=execution.fold,
                wants_baseline=baseline.is_wanted(root, Turn(execution.repeat, execution.fold)),
                checkpoints=checkpoint_folders(
                    (row for row in trial.kept if row.execution == execution.number), earlier.workers
                ),
                earlier=earlier.of_training(trial.pk, execution.number),
            )
            for execution in trial.todo
        ),
        until=trial.epochs if trial.until is None else trial.until,
        waits=trial.until is None and trial.epochs is not None and top is not None and trial.epochs < top,
    )


register_actions(SEARCH.name, SearchActions())
