"""Compares the parts into which a split divides a dataset version."""

from typing import Any

from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.runs.tasks import dataset_of
from jobs.kinds.split_overview.facts import SPLIT_OVERVIEW
from jobs.kinds.split_overview.payload import SplitOverviewPayload, SplitOverviewResult, SplitOverviewTask
from jobs.models import Attempt


class SplitOverviewActions(KindActions[SplitOverviewPayload, SplitOverviewResult]):
    """A split overview reads a dataset version, and changes no row."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> SplitOverviewTask:
        """Return the version's table, and the split."""
        payload = attempt.job.payload_as(SplitOverviewPayload)
        return SplitOverviewTask(**common, dataset=dataset_of(attempt.job), split=payload.split)


register_actions(SPLIT_OVERVIEW.name, SplitOverviewActions())
