"""What the row of an ensemble of chosen trials holds: of which search, and which trials."""

from pydantic import Field

from jobs.contracts.after import AfterSpec, Ensemble, Retrain
from jobs.contracts.base import Frozen
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.search_space import Value
from jobs.kinds.base import ChosenTrials, Payload


class ChosenTrial(Frozen):
    """A trial by its number, with the values that are trained anew: they outlive the trial's row."""

    trial: int = Field(ge=1)
    values: dict[str, Value]


class ChosenEnsemblePayload(Payload):
    """The search that tried the trials, and the trials in the order of their numbers.

    Nothing is done for the job itself: it is all in the jobs that follow it.
    """

    task_done: bool = True
    search: int
    chosen: tuple[ChosenTrial, ...]

    def chosen_trials(self) -> ChosenTrials:
        """Return the trials that are retrained."""
        return ChosenTrials(self.search, tuple(member.trial for member in self.chosen))

    def followed(self, spec: ExperimentSpec) -> ExperimentSpec:
        """Return a spec that retrains the chosen trials and pools them, as the spec says or as usual."""
        retrain = (spec.after.retrain or Retrain()).model_copy(update={"top": len(self.chosen)})
        after = AfterSpec(retrain=retrain, ensemble=spec.after.ensemble or Ensemble())
        return spec.model_copy(update={"after": after})
