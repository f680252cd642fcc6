"""Implements gates: compares a promotion's version with the champion."""

from typing import Any

from jobs.actions.code import own_code
from jobs.actions.registry import promotions
from jobs.actions.runs.kind_actions import JobError, KindActions, register_actions
from jobs.actions.runs.tasks import data_of, origin_of
from jobs.errors import BadSpec
from jobs.kinds.gate.facts import GATE
from jobs.kinds.gate.payload import CHALLENGER, CHAMPION, GatePayload, GateResult, GateTask
from jobs.messages.task import ModelWithCode
from jobs.models import Attempt, Job, ModelVersion, PromotionRequest
from jobs.queries.registry import gate_rules, versions
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections import measures
from jobs.spec.sections.search import Objective
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
        named = ((CHALLENGER, version), (CHAMPION, champion))
        return GateTask(
            # The process that computes the metrics executes no code of users.
            **{**common, "code": None},
            models=tuple(
                ModelWithCode(
                    name=name, file=_file_of(row), code=own_code.code_of_row(row.needed_code, row.packages)
                )
                for name, row in named
                if row is not None and row.needed_code is not None
            ),
            challenger=_file_of(version),
            challenger_digest=version.artifact_id,
            challenger_signature=version.signature,
            challenger_classes=_classes_of(version),
            champion=_file_of(champion) if champion is not None else None,
            champion_signature=champion.signature if champion is not None else None,
            champion_classes=_classes_of(champion) if champion is not None else None,
            sample=_sample_of(version),
            dataset=dataset,
            spec=spec,
            rules=gate_rules.rules_of(promotion.gate_revision),
            objective=objective_of(spec),
        )

    def on_done(self, job: Job, result: GateResult) -> None:
        """Store the gates in the promotion request."""
        promotions.record_gates(job, result.gates)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Fail the promotion request: without gates it cannot be approved."""
        promotions.record_gate_failure(job, error)


def _file_of(version: ModelVersion) -> str:
    return str(store().path(version.artifact_id))


def _classes_of(version: ModelVersion) -> tuple[str, ...] | None:
    """Return the names of a version's classes; () if it has none, and None if they are unknown."""
    if version.class_labels:
        return tuple(map(str, version.class_labels))
    try:
        data = data_of(version)
    # They may have been deleted meanwhile.
    except BadSpec:
        return None
    profile = None if data is None else data.profile_json
    return None if profile is None or profile.get("class_labels") else ()


def _sample_of(version: ModelVersion) -> str | None:
    digest = versions.sample_digest(version)
    return None if digest is None else str(store().path(digest))


def objective_of(spec: ExperimentSpec | None) -> Objective | None:
    """Return the measure that a version was made for: its search's objective, or its retraining's monitor."""
    if spec is None:
        return None
    if spec.search is not None:
        return spec.search.objective
    monitor = spec.after.retrain.monitor if spec.after.retrain is not None else None
    return None if monitor is None else Objective(metric=monitor, direction=measures.direction(monitor))


register_actions(GATE.name, GateActions())
