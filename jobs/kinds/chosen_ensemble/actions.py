"""What is done for ensembles of trials that somebody chose: retraining and pooling, as steps of their own."""

from jobs.actions import pipeline, submit
from jobs.actions.kind_actions import KindActions, register
from jobs.kinds.chosen_ensemble.facts import CHOSEN_ENSEMBLE
from jobs.kinds.chosen_ensemble.payload import ChosenEnsemblePayload
from jobs.kinds.search.payload import FamilyResult
from jobs.models import Job, User


class ChosenEnsembleActions(KindActions[ChosenEnsemblePayload, FamilyResult]):
    """Such an ensemble has no task of its own."""

    def advance(self, root: Job) -> None:
        """Make the next step's jobs."""
        pipeline.follow(root)

    def clone(self, job: Job, *, by: User) -> Job:
        """Queue the same values again, run as they are: their search may have been changed since."""
        return submit.ensemble(job.payload_as(ChosenEnsemblePayload), like=job, by=by)


register(CHOSEN_ENSEMBLE.name, ChosenEnsembleActions())
