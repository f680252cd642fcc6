"""Compares a search's best trial with the constant prediction, which ignores the features."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from jobs.models import Job, Trial
from jobs.queries.search import outcomes, retraining
from jobs.queries.search.algorithm_state import AlgorithmState
from jobs.spec.sections.baseline import Baseline, Constant
from jobs.spec.sections.evaluation import Turn
from jobs.spec.sections.search import Objective

TOLERANCE = 1e-6
"""A lead that is a smaller share of the scores is rounding."""
REMEDIES = (
    "Look at the findings about the target on the page of the data set, use other or more columns, choose "
    "another objective, or bring more rows."
)


class Comparison(NamedTuple):
    """The best trial beside the constant prediction, on the same validation rows.

    Attributes:
        metric: the search's objective.
        score: of the constant prediction: the mean over the best trial's trainings, as its own score.
        constant: the prediction.
        best: the best trial's score.
        is_beaten: whether the best trial is better.
        may_be_chance: whether it is better by no more than another choice of validation rows could add.
    """

    metric: str
    score: float
    constant: Constant
    best: float
    is_beaten: bool
    may_be_chance: bool

    def describe(self) -> str:
        """Return the comparison as one sentence with both scores."""
        constant = self.constant.describe()
        if not self.is_beaten:
            return (
                f"No trial beats the constant prediction: {constant} gives {self.metric} {self.score:.4g}, "
                f"the best trial {self.best:.4g}."
            )
        sentence = f"Constant prediction: {self.score:.4g} ({constant})."
        if self.may_be_chance:
            sentence += " So small a lead over it may be chance: it is within the 95 % interval."
        return sentence


def is_wanted(root: Job, turn: Turn) -> bool:
    """Return whether an execution is to measure the constant prediction on its validation rows."""
    state = _state_of(root)
    return state is not None and state.baseline_of(turn) is None


def compare_with_constant(root: Job, best: Trial | None) -> Comparison | None:
    """Compare a search's best trial with the constant prediction.

    None if the constant's score is not known for all trainings of the trial: its search is older than this
    comparison, or has several objectives, or code of users measures its trials.
    """
    state = _state_of(root)
    if state is None or not state.baselines or best is None or best.score is None:
        return None
    objective = outcomes.objective_of(root)
    parts = [state.baseline_of(turn) for turn in _scored_turns(state.baselines, best)]
    measured = [part for part in parts if part is not None and part.metric == objective.metric]
    scores = [part.score for part in measured if part.score is not None]
    constants = [part.constant for part in measured if part.constant is not None]
    if not scores or not len(parts) == len(scores) == len(constants):
        return None
    score = fmean(scores)
    is_beaten = _is_better(objective, best.score, score)
    return Comparison(
        metric=objective.metric,
        score=score,
        constant=_common(constants),
        best=best.score,
        is_beaten=is_beaten,
        may_be_chance=is_beaten and _is_inside(measured, best.score),
    )


def comparison_of_search(root: Job) -> Comparison | None:
    """Compare the best trial of a root's search with the constant prediction; see `compare_with_constant`.

    The search of a root that retrains a trial is the one that has the trial.
    """
    root = retraining.source_search(root) or root
    state = _state_of(root)
    if state is None or not state.baselines:
        return None
    return compare_with_constant(root, outcomes.best_trials(root, limit=1).first())


def _state_of(root: Job) -> AlgorithmState | None:
    """Return the state of a search with one objective that our own code measures."""
    payload = root.payload
    if not isinstance(payload, AlgorithmState) or root.revision is None:
        return None
    spec = root.revision.spec
    if spec.search is None or spec.search.objectives is not None or spec.model.info.trains_itself:
        return None
    return payload


def _scored_turns(known: Sequence[Baseline], best: Trial) -> list[Turn]:
    """Return the part of the evaluation that each of a trial's scores is from."""
    if all(one.fold is None for one in known):
        return [Turn(1, None)]  # without folds all have the same rows: nothing needs to be read
    rows = best.executions.filter(state__in=outcomes.SCORED_STATES, score__isnull=False)
    return [Turn(repeat, fold) for repeat, fold in rows.values_list("repeat", "fold")]


def _is_better(objective: Objective, best: float, constant: float) -> bool:
    lead = objective.cost(constant) - objective.cost(best)
    return lead > TOLERANCE * max(abs(best), abs(constant))


def _is_inside(measured: Sequence[Baseline], best: float) -> bool:
    """Return whether a score is inside the interval of the constant's one, if all trainings share it."""
    first = measured[0]
    if any(part != first for part in measured) or first.low is None or first.high is None:
        return False
    return first.low <= best <= first.high


def _common(constants: Sequence[Constant]) -> Constant:
    """Return the constant that all parts have; its value is left out if it differs between folds."""
    first = constants[0]
    return first if all(one == first for one in constants) else first.model_copy(update={"value": None})
