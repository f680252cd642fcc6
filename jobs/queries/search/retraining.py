"""Compares a retrained model with the trial whose values it has, and reads how its epoch was chosen.

The trial has a range: its score, plus and minus either twice the spread over its executions or half the 95 %
interval on the validation rows, whichever is larger. The retrained model is clearly worse if the range and
its own score's 95 % interval do not overlap. A smaller difference may be chance, and a trial's score is a
little too good because the best trial and its best epoch were chosen by it.
"""

from typing import NamedTuple

from jobs.kinds.train.payload import TrainResult
from jobs.messages.training import Choice, Measured
from jobs.models import Job, Trial
from jobs.queries.runs import steps
from jobs.queries.search import outcomes
from jobs.spec.name_lists import write_names
from jobs.spec.sections import monitors
from jobs.spec.sections.monitors import Monitor
from jobs.spec.sections.search import Objective

type TrainingResult = TrainResult
"""For pages: the result of a training."""


class Shortfall(NamedTuple):
    """A retrained model that is clearly worse than its trial.

    Attributes:
        trial: the trial.
        part: the part of the data, validation or test.
        measured: the model's objective on these rows.
        range: half the width of the trial's range.
    """

    trial: Trial
    part: str
    measured: Measured
    range: float


def source_search(job: Job) -> Job | None:
    """Return the search whose trial a job of its own trains again, if it still exists."""
    source = job.payload.source_trial()
    if source is None:
        return None
    return Job.objects.filter(pk=source.search, project=job.project_id).first()


def repeated_trial(job: Job) -> Trial | None:
    """Return the trial that a training repeats; None if it repeats none or the trial is deleted."""
    source, number = job.payload.source_trial(), job.payload.repeated_trial()
    if source is not None:
        search, number = source.search, source.trial
    elif number is not None and job.parent is not None:
        selection = job.parent.payload.chosen_trials()
        search = selection.search if selection else job.parent.pk
    else:
        return None
    rows = Trial.objects.select_related("job__revision")
    return rows.filter(job=search, job__project=job.project_id, number=number).first()


def training_result(job: Job) -> TrainingResult | None:
    """Return a training's result if it has chosen an epoch; None for other jobs."""
    results = job.results
    return results if isinstance(results, TrainResult) and results.best_epoch else None


def objective_of(job: Job) -> Objective:
    """Return a training's objective: from the search whose trial it repeats, else from its root."""
    trial = repeated_trial(job)
    return outcomes.objective_of(trial.job if trial is not None else job.parent or job)


def find_shortfall(job: Job, result: TrainResult) -> Shortfall | None:
    """Return how a retrained model is clearly worse than its trial. None if it is not, or if unknown."""
    trial, validation = repeated_trial(job), result.measured.get("validation")
    if trial is None or trial.score is None or validation is None:
        return None
    objective = outcomes.objective_of(trial.job)
    half = 0.0
    if validation.low is not None and validation.high is not None:
        half = (validation.high - validation.low) / 2
    allowed = max(2 * (trial.std or 0.0), half)
    for part, measured in result.measured.items():
        best_case = measured.high if objective.direction == "max" else measured.low
        if best_case is None or measured.metric != objective.metric:
            continue
        if objective.cost(best_case) > objective.cost(trial.score) + allowed:
            return Shortfall(trial, part, measured, allowed)
    return None


class ChosenEpoch(NamedTuple):
    """How a training chooses its epoch, and the choice once it is made.

    Attributes:
        best: the measure that chooses it.
        stop: the measure that early stopping watches; None if it does not end the training early.
        patience: epochs without improvement after which the training ends.
        choice: the choice; None while the training runs, and for a training from an earlier release.
        epochs: the epochs in the final training, with the validation rows; None if there was none.
        trial: the trial that is repeated; None if there is none.
        measured: the retrained model's objective by data part.
    """

    best: Monitor
    stop: Monitor | None
    patience: int | None
    choice: Choice | None
    epochs: int | None
    trial: Trial | None
    measured: dict[str, Measured]

    @property
    def names(self) -> str:
        """Name the curves that decide, as `read_names` reads them."""
        metrics = (self.best.metric, *((self.stop.metric,) if self.stop is not None else ()))
        return write_names(dict.fromkeys(metrics))


def chosen_epoch(job: Job) -> ChosenEpoch | None:
    """Return how a training chooses its epoch; None for other jobs, and for scripts."""
    if not job.facts.trains or job.revision is None or job.revision.spec.model.info.trains_itself:
        return None
    spec, retrain = job.revision.spec, steps.effective_spec(job.parent or job).after.retrain
    early = spec.fit.early_stopping
    objective = objective_of(job) if spec.search is not None else None
    best, stop = monitors.monitors_of_training(objective, retrain, early)
    result = TrainResult.model_validate(job.results_json)
    patience = retrain.patience if retrain is not None else early.patience if early is not None else None
    again = retrain is not None and retrain.include_validation
    return ChosenEpoch(
        best=best,
        stop=None if patience is None else stop,
        patience=patience,
        choice=result.choice,
        epochs=result.epochs if again else None,
        trial=repeated_trial(job),
        measured={str(part): value for part, value in result.measured.items()},
    )
