"""Implements quantizations: the step that makes the final candidate smaller."""

from typing import Any

from jobs.actions.registry import registration
from jobs.actions.runs import submit
from jobs.actions.runs.kind_actions import KindActions, ResultRefused, register_actions
from jobs.actions.runs.tasks import artifact_path, dataset_of, spec_of
from jobs.errors import TrainyardError
from jobs.kinds.quantize.facts import QUANTIZE
from jobs.kinds.quantize.payload import QuantizePayload, QuantizeResult, QuantizeTask
from jobs.models import Attempt, Job, RegisteredModel
from jobs.queries.search import outcomes
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Quantize
from jobs.states import JobState
from jobs.store import store


class QuantizeActions(KindActions[QuantizePayload, QuantizeResult]):
    """A quantization reads the model that another job of its root made."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> QuantizeTask:
        """Return the task: the model to quantize, and the options."""
        job, payload = attempt.job, attempt.job.payload_as(QuantizePayload)
        spec = spec_of(job)
        if payload.artifact:
            model = str(store().path(payload.artifact))
        else:
            model = artifact_path(Job.objects.get(pk=payload.source), "model")
        of_step = spec.after.quantize or Quantize()
        return QuantizeTask(
            **common,
            spec=spec,
            quantize=Quantize(mode=payload.mode) if payload.mode else of_step,
            dataset=dataset_of(job),
            model=model,
        )

    def on_done(self, job: Job, result: QuantizeResult) -> None:
        """Add the result to the registered model of the version that was made smaller."""
        del result
        name = job.payload_as(QuantizePayload).model
        if not name or job.created_by is None:
            return
        model = RegisteredModel.objects.filter(name=name).first()
        file = job.artifacts.filter(role="model").order_by("-pk").first()
        if model is None or file is None:
            what = f"the model {name} was deleted" if model is None else "the job has no model file"
            raise ResultRefused({"code": "not_registered", "message": f"{what}, so no version was added"})
        try:
            registration.add_version(model, file.artifact_id, by=job.created_by)
        except TrainyardError as error:
            raise ResultRefused({"code": error.code, "message": error.message}) from error

    def children(self, root: Job, spec: ExperimentSpec) -> list[Job]:
        """Quantize the ensemble if there is one, else the best training."""
        if spec.after.quantize is None:
            return []
        ensemble = root.children.pooling().filter(state=JobState.COMPLETED).first()
        payload = QuantizePayload(source=(ensemble or outcomes.best_single(root)).pk)
        entry = spec.after.quantize.format
        title = f"{entry.verb} to {entry.label}"
        return [submit.create_step(root, payload, 1, title=title)]


register_actions(QUANTIZE.name, QuantizeActions())
