"""Implements external searches: a chief assigns their trials to scripts outside Trainyard."""

from jobs.actions.runs import pipeline
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.search import external_search
from jobs.kinds.external_search.facts import EXTERNAL_SEARCH
from jobs.kinds.external_search.payload import ExternalSearchPayload
from jobs.kinds.roots import RootResult
from jobs.models import Job
from jobs.queries.search import outcomes


class ExternalSearchActions(KindActions[ExternalSearchPayload, RootResult]):
    """No runner works for an external search, and no step follows it."""

    def advance(self, root: Job) -> None:
        """End the search when it has no more trials; until then, note if it has no chief."""
        payload = root.payload_as(ExternalSearchPayload)
        if payload.finishing:
            pipeline.stop_waiting_trials(root)
        elif pipeline.trials_keep_failing(root, payload.search.max_consecutive_failures):
            pipeline.give_up(root)
            return
        if self._has_more_trials(root, payload):
            external_search.wait_for_chief(root)
        elif outcomes.best_trials(root, limit=1):
            pipeline.complete(root)
        else:
            pipeline.end_without_trial(root)

    def _has_more_trials(self, root: Job, payload: ExternalSearchPayload) -> bool:
        """Return whether trials are open, or the algorithm will create more."""
        if root.trials.unfinished().exists():
            return True
        if payload.finishing:
            return False
        created = root.trials.filter(source="algorithm").count()
        return created < payload.search.planned() and not payload.exhausted


register_actions(EXTERNAL_SEARCH.name, ExternalSearchActions())
