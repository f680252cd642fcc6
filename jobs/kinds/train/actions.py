"""Implements trainings: of an experiment without a search, of the best trials, or of chosen trials."""

from collections.abc import Sequence
from typing import Any

from jobs.actions import pipeline, submit
from jobs.actions.kind_actions import KindActions, register
from jobs.actions.tasks import checkpoint_folders, dataset_of, spec_of
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.values import apply_values
from jobs.kinds.chosen_ensemble.payload import ChosenEnsemblePayload, ChosenTrial
from jobs.kinds.train.facts import TRAIN
from jobs.kinds.train.payload import TrainPayload, TrainResult, TrainTask
from jobs.models import Attempt, Checkpoint, Job, User
from jobs.queries import outcomes, steps


class TrainActions(KindActions[TrainPayload, TrainResult]):
    """A training is a step after a search, or a root."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> TrainTask:
        """Return the task: the spec with the trial's values, and the checkpoints from which it can resume."""
        job = attempt.job
        root = job.parent or job
        return TrainTask(
            **common,
            spec=apply_values(spec_of(job), job.payload.hyperparameters()),
            dataset=dataset_of(job),
            retrain=steps.effective_spec(root).after.retrain,
            objective=outcomes.objective_of(root),
            model_name=f"m{job.pk}",
            resume=checkpoint_folders(Checkpoint.objects.kept().filter(job=job).order_by("-pk")),
        )

    def advance(self, root: Job) -> None:
        """Create the next step's jobs once the model is trained."""
        if root.payload.task_done:
            pipeline.follow(root)

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Return a training of each of the best trials, or of each chosen trial."""
        if root.kind == TRAIN.name or not spec.after.has_steps():
            return []
        made = list(root.children.filter(kind=TRAIN.name).order_by("ordinal"))
        return made or [
            submit.child(
                root,
                TRAIN,
                rank,
                title=f"Retrain trial {member.trial}",
                payload=TrainPayload(trial=member.trial, values=member.values),
                slots=root.slots,
            )
            for rank, member in enumerate(_members(root, spec), start=1)
        ]

    def clone(self, job: Job, *, by: User) -> Job:
        """Queue the same revision again."""
        return submit.resubmit(job, by=by)


def _members(root: Job, spec: ExperimentSpec) -> Sequence[ChosenTrial]:
    if isinstance(root.payload, ChosenEnsemblePayload):
        return root.payload.chosen
    top = spec.after.retrain.top if spec.after.retrain else 1
    best = outcomes.best_trials(root, limit=top)
    return [ChosenTrial(trial=trial.number, values=trial.values) for trial in best]


register(TRAIN.name, TrainActions())
