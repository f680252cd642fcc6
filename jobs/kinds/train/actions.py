"""Trains one model: for an experiment without a search, or from a best or chosen trial."""

from collections.abc import Sequence
from typing import Any

from jobs.actions.runs import events, job_warnings, pipeline, submit
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.tasks import checkpoint_folders, dataset_if_any, spec_of
from jobs.kinds.base import ChosenTrial
from jobs.kinds.train.facts import TRAIN
from jobs.kinds.train.payload import TrainPayload, TrainResult
from jobs.messages.training import TrainTask
from jobs.messages.warning_codes import WORSE_THAN_TRIAL
from jobs.models import Attempt, Checkpoint, Job, User
from jobs.queries.runs import steps
from jobs.queries.runs.earlier_trainings import earlier_trainings
from jobs.queries.search import outcomes, retraining
from jobs.queries.search.retraining import Shortfall
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.space.values import apply_values


class TrainActions(KindActions[TrainPayload, TrainResult]):
    """A training is a step after a search, or a root."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> TrainTask:
        """Return the task: the spec with the trial's values, and the checkpoints from which it can resume."""
        job = attempt.job
        root = job.parent or job
        earlier = earlier_trainings(attempt)
        return TrainTask(
            **common,
            spec=apply_values(spec_of(job), job.payload.hyperparameters()),
            dataset=dataset_if_any(job),
            retrain=steps.effective_spec(root).after.retrain,
            objective=retraining.objective_of(job),
            # Not the job's key, so that a repeated training makes the same file, bit by bit.
            model_name=f"m{job.ordinal}",
            resume=checkpoint_folders(
                Checkpoint.objects.kept().filter(job=job).order_by("-pk"), earlier.workers
            ),
            earlier=earlier.of_training(),
        )

    def on_done(self, job: Job, result: TrainResult) -> None:
        """Warn if the model is clearly worse than the trial whose values it has."""
        shortfall = retraining.find_shortfall(job, result)
        if shortfall is not None:
            code, message = WORSE_THAN_TRIAL, _describe_shortfall(shortfall, result)
            job_warnings.add_warning(job.pk, code=code, message=message)
            events.append(job.root_id_or_self, [events.event("warning", job, code=code, message=message)])

    def advance(self, root: Job) -> None:
        """Create the next step's jobs once the model is trained."""
        if root.payload.task_done:
            pipeline.start_next_step(root)

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Return one training for each best trial, or for each chosen trial."""
        if root.kind == TRAIN.name or not spec.after.has_steps():
            return []
        trainings = list(root.children.filter(kind=TRAIN.name).order_by("ordinal"))
        # Every pass asks for the jobs, but the trials are ranked only once.
        if trainings:
            return trainings
        members: Sequence[ChosenTrial]
        if (selection := root.payload.chosen_trials()) is not None:
            members = selection.trials
        else:
            best = outcomes.best_trials(root, limit=spec.after.retrain.top if spec.after.retrain else 1)
            members = [ChosenTrial(trial=trial.number, values=trial.values) for trial in best]
        return [
            submit.create_step(
                root,
                TrainPayload(trial=member.trial, values=member.values),
                rank,
                title=f"Retrain trial {member.trial}",
                slots=root.slots,
                max_minutes=spec.resources.max_minutes,
            )
            for rank, member in enumerate(members, start=1)
        ]

    def clone(self, job: Job, *, by: User, registers: bool) -> Job:
        """Queue the same revision again."""
        return submit.resubmit(job, by=by, registers=registers)


def _describe_shortfall(shortfall: Shortfall, result: TrainResult) -> str:
    """Return the difference from the trial with its numbers, and the next step."""
    measured, trial, metric = shortfall.measured, shortfall.trial, shortfall.measured.metric
    interval = f"95 % interval {_format_number(measured.low)} to {_format_number(measured.high)}"
    name = metric.removeprefix("val_")
    return (
        f"Clearly worse than its trial: on {measured.rows:,} {shortfall.part} rows {name} is "
        f"{_format_number(measured.value)} ({interval}), but trial {trial.number} reached "
        f"{_format_number(trial.score)} ± {_format_number(shortfall.range)} on validation rows. "
        f"{_next_step(shortfall, result)}"
    )


def _next_step(shortfall: Shortfall, result: TrainResult) -> str:
    choice, metric = result.choice, shortfall.measured.metric
    if choice is not None and choice.metric != metric:
        return (
            f"Its epoch was chosen by {choice.metric}: leave the measure that chooses the epoch of the "
            f"retraining (after.retrain.monitor) empty to choose it by {metric}, and retrain the trial."
        )
    if shortfall.part == "validation":
        return (
            "The training did not repeat the trial's result: retrain it with another seed (fit.seed), or "
            "raise the patience of the retraining (after.retrain.patience). If it stays worse, the trial was "
            "lucky: choose the next best one."
        )
    return (
        "Do not promote it before you know why: retrain it with another seed (fit.seed) or without the "
        "validation rows (after.retrain.include_validation), compare the classes under Evaluation, and check "
        "that the split gives test rows like the others. With more executions per trial a search is deceived "
        "less often."
    )


def _format_number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


register_actions(TRAIN.name, TrainActions())
