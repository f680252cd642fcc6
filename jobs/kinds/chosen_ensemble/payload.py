"""Defines the payload for an ensemble from chosen trials: the search and the trials."""

from jobs.kinds.base import ChosenTrial, ChosenTrials, Payload
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import AfterSpec, Ensemble, Retrain


class ChosenEnsemblePayload(Payload):
    """A search, and the trials chosen from it, sorted by number.

    The job itself has no task: the jobs that follow it do the work.
    """

    task_done: bool = True
    search: int
    chosen: tuple[ChosenTrial, ...]

    def chosen_trials(self) -> ChosenTrials:
        """Return the trials that are retrained."""
        return ChosenTrials(self.search, self.chosen)

    def spec_with_steps(self, spec: ExperimentSpec) -> ExperimentSpec:
        """Return a spec that retrains and pools the chosen trials, with the spec's options or defaults."""
        retrain = (spec.after.retrain or Retrain()).model_copy(update={"top": len(self.chosen)})
        after = AfterSpec(retrain=retrain, ensemble=spec.after.ensemble or Ensemble())
        return spec.model_copy(update={"after": after})
