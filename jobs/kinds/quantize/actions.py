"""Implements quantizations: the step that makes the final candidate smaller."""

from typing import Any

from jobs.actions.runs import submit
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.tasks import artifact_path, dataset_of, spec_of
from jobs.kinds.quantize.facts import QUANTIZE
from jobs.kinds.quantize.payload import QuantizePayload, QuantizeResult, QuantizeTask
from jobs.models import Attempt, Job
from jobs.queries.search import outcomes
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Quantize
from jobs.states import JobState


class QuantizeActions(KindActions[QuantizePayload, QuantizeResult]):
    """A quantization reads the model that another job of its root made."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> QuantizeTask:
        """Return the task: the model to quantize, and the options."""
        job = attempt.job
        spec = spec_of(job)
        source = Job.objects.get(pk=job.payload_as(QuantizePayload).source)
        return QuantizeTask(
            **common,
            spec=spec,
            quantize=spec.after.quantize or Quantize(),
            dataset=dataset_of(job),
            model=artifact_path(source, "model"),
        )

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
