"""Retrains chosen trials and pools their models, as separate steps."""

from jobs.actions.runs import pipeline
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.actions.search import ensembles
from jobs.kinds.chosen_ensemble.facts import CHOSEN_ENSEMBLE
from jobs.kinds.chosen_ensemble.payload import ChosenEnsemblePayload
from jobs.kinds.roots import RootResult
from jobs.models import Job, User


class ChosenEnsembleActions(KindActions[ChosenEnsemblePayload, RootResult]):
    """The root job has no task; its steps do the work."""

    def advance(self, root: Job) -> None:
        """Create the next step's jobs."""
        pipeline.start_next_step(root)

    def clone(self, job: Job, *, by: User, registers: bool) -> Job:
        """Queue the same values again, unchanged: their search may have been changed since."""
        del registers  # it registers nothing
        return ensembles.queue_payload(job.payload_as(ChosenEnsemblePayload), like=job, by=by)


register_actions(CHOSEN_ENSEMBLE.name, ChosenEnsembleActions())
