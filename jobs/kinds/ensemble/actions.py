"""Implements ensembles: the step that pools the retrained models."""

from typing import Any

from jobs.actions.runs import submit
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.tasks import artifact_path, dataset_of, spec_of
from jobs.kinds.ensemble.facts import ENSEMBLE
from jobs.kinds.ensemble.payload import EnsemblePayload, EnsembleResult, EnsembleTask, member_name
from jobs.messages.member import Member
from jobs.models import Attempt, Job
from jobs.queries.search import outcomes
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Ensemble
from jobs.spec.sections.search import Objective


class EnsembleActions(KindActions[EnsemblePayload, EnsembleResult]):
    """An ensemble fits weights for the models that a root's trainings made."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> EnsembleTask:
        """Return the task: the members with their models and validation predictions."""
        job = attempt.job
        spec, objective = spec_of(job), outcomes.objective_of(job.parent or job)
        members = job.payload_as(EnsemblePayload).members
        rows = Job.objects.in_bulk(members)
        return EnsembleTask(
            **common,
            spec=spec,
            ensemble=spec.after.ensemble or Ensemble(),
            dataset=dataset_of(job),
            members=tuple(_member_input(rows[pk], objective) for pk in members),
            # The same choice as on the page of the job.
            best_member=member_name(outcomes.best_of([rows[pk] for pk in members], objective).pk),
        )

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Return one ensemble of all the root's trainings."""
        if spec.after.ensemble is None:
            return []
        members = root.children.trainings().order_by("ordinal").values_list("pk", flat=True)
        payload = EnsemblePayload(members=tuple(members))
        return [submit.create_step(root, payload, 1, title="Ensemble")]


def _member_input(training: Job, objective: Objective) -> Member:
    return Member(
        name=member_name(training.pk),
        title=training.title,
        model=artifact_path(training, "model"),
        validation_predictions=artifact_path(training, "validation_predictions"),
        score=outcomes.validation_score(training, objective),
        values=training.payload.hyperparameters(),
    )


register_actions(ENSEMBLE.name, EnsembleActions())
