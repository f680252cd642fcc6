"""Implements gates: compares a promotion's version with the champion."""

from typing import Any

from jobs.actions import own_code, promotions
from jobs.actions.kind_actions import JobError, KindActions, register
from jobs.actions.tasks import origin_of
from jobs.contracts import measures
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.search import Objective
from jobs.kinds.gate.facts import GATE
from jobs.kinds.gate.payload import GatePayload, GateResult, GateTask
from jobs.models import Attempt, CodeVersion, Job, PromotionRequest
from jobs.queries import gate_rules
from jobs.store import store


class GateActions(KindActions[GatePayload, GateResult]):
    """The gates decide whether a promotion request can be approved."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> GateTask:
        """Return the task: challenger, champion, and the data on which the challenger was trained."""
        requests = PromotionRequest.objects.select_related(
            "version__source_job__revision",
            "version__code__project",
            "version__packages",
            "baseline_version__code__project",
            "baseline_version__packages",
            "gate_revision",
        )
        promotion = requests.get(pk=attempt.job.payload_as(GatePayload).promotion)
        version, champion = promotion.version, promotion.baseline_version
        spec, dataset = origin_of(version)
        ours = version.needed_code
        theirs = champion.needed_code if champion is not None else None
        return GateTask(
            **{**common, "code": own_code.of_two(version, champion)},
            challenger_code=_folder(ours, ours),
            champion_code=_folder(theirs, ours),
            challenger=str(store().path(version.artifact_id)),
            challenger_digest=version.artifact_id,
            champion=str(store().path(champion.artifact_id)) if champion is not None else None,
            champion_signature=champion.signature if champion is not None else None,
            dataset=dataset,
            spec=spec,
            rules=gate_rules.rules_of(promotion.gate_revision),
            objective=objective_of(spec),
        )

    def on_done(self, job: Job, result: GateResult) -> None:
        """Store the gates in the promotion request."""
        promotions.record_gates(job, result)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Fail the promotion request: without gates it cannot be approved."""
        promotions.record_gate_failure(job, error)


def _folder(code: CodeVersion | None, challengers: CodeVersion | None) -> str:
    """Return the folder of the code of a model in that of the task; empty for a model that needs none."""
    if code is None:
        return ""
    is_challengers = challengers is not None and code.digest == challengers.digest
    return own_code.FIRST if is_challengers else own_code.SECOND


def objective_of(spec: ExperimentSpec | None) -> Objective | None:
    """Return the measure that a version was made for: its search's objective, or its retraining's monitor."""
    if spec is None:
        return None
    if spec.search is not None:
        return spec.search.objective
    monitor = spec.after.retrain.monitor if spec.after.retrain is not None else None
    return None if monitor is None else Objective(metric=monitor, direction=measures.direction(monitor))


register(GATE.name, GateActions())
