"""What is done for external searches: a chief hands out their trials, and ends with them."""

from jobs.actions import external_search, pipeline
from jobs.actions.kind_actions import KindActions, register
from jobs.kinds.external_search.facts import EXTERNAL_SEARCH
from jobs.kinds.external_search.payload import ExternalSearchPayload
from jobs.kinds.search.payload import FamilyResult
from jobs.models import Job
from jobs.queries import outcomes


class ExternalSearchActions(KindActions[ExternalSearchPayload, FamilyResult]):
    """No runner works for an external search, and no step follows it."""

    def advance(self, root: Job) -> None:
        """End the search when it is over, or say that no chief serves it."""
        payload = root.payload_as(ExternalSearchPayload)
        if pipeline.trials_keep_failing(root, payload.search.max_consecutive_failures):
            pipeline.give_up(root)
        elif self._goes_on(root, payload):
            external_search.rest_without_chief(root)
        elif outcomes.best_trials(root, limit=1):
            pipeline.complete(root)
        else:
            pipeline.fail(root, pipeline.NO_TRIAL_COMPLETED)

    def _goes_on(self, root: Job, payload: ExternalSearchPayload) -> bool:
        """Say whether trials are open, or the algorithm will make more."""
        if root.trials.unfinished().exists():
            return True
        made = root.trials.filter(source="algorithm").count()
        return made < payload.search.planned() and not payload.exhausted


register(EXTERNAL_SEARCH.name, ExternalSearchActions())
