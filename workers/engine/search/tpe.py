"""Tree-structured Parzen estimator by Optuna, with a new study in memory for each answer.

`multivariate` draws hyperparameters jointly, so that dependent ones are optimized together. `group` does so
in every branch of a conditional space; otherwise only the hyperparameters that all trials share are drawn
jointly. `constant_liar` counts pending trials as bad ones, so that new trials keep a distance from them.

Sources: Bergstra et al., Algorithms for Hyper-Parameter Optimization, NeurIPS 2011, section 4; Watanabe,
Tree-Structured Parzen Estimator, arXiv 2304.11127; the liar: Ginsbourger, Le Riche and Carraro, Kriging Is
Well-Suited to Parallelize Optimization, 2010, section 4.2; several objectives: Ozaki et al., GECCO 2020.
"""

import warnings
from collections.abc import Callable, Iterable

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import TPESampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from jobs.messages.suggest import TrialRow
from jobs.spec.space.search_space import Value
from workers.engine.search.axes import Axis, axes_of, compose
from workers.engine.search.history import History
from workers.engine.search.proposals import one_by_one
from workers.engine.search.seeds import seed_of

DIRECTIONS = {"min": StudyDirection.MINIMIZE, "max": StudyDirection.MAXIMIZE}
ROWS = 1000
"""Maximum number of results used: the best by the first objective, and the newest."""


def start(history: History) -> Callable[[History], dict[str, Value]]:
    """Return the function that proposes configurations."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    axes = axes_of(history.search.space)
    study = optuna.create_study(directions=[DIRECTIONS[o.direction] for o in history.search.ranked_by()])
    study.add_trials(_trials(axes, history.model_rows(ROWS)))
    next_number = history.next_number

    def propose(history: History) -> dict[str, Value]:
        nonlocal next_number
        study.add_trials(_trials(axes, [row for row in history.rows if row.number >= next_number]))
        next_number = history.next_number
        seed = seed_of(history.search.seed, history.next_number)
        with warnings.catch_warnings():
            # Optuna marks `multivariate`, `group` and `constant_liar` as experimental
            warnings.simplefilter("ignore")
            study.sampler = TPESampler(seed=seed, multivariate=True, group=True, constant_liar=True)
        trial = study.ask()
        values = compose(history.search.space, axes, lambda axis: _suggested(trial, axis))
        # The configuration may be replaced as a duplicate: the next call adds the row with its final values,
        # and the sampler ignores failed trials.
        study.tell(trial, state=TrialState.FAIL)
        return values

    return propose


def _distribution(axis: Axis) -> BaseDistribution:
    if not axis.points:
        return FloatDistribution(0.0, 1.0)
    if axis.is_ordered:
        return IntDistribution(0, axis.last)
    return CategoricalDistribution(tuple(range(len(axis.points))))


def _suggested(trial: Trial, axis: Axis) -> Value:
    name = axis.parameter.name
    if not axis.points:
        return axis.value(trial.suggest_float(name, 0.0, 1.0))
    if axis.is_ordered:
        return axis.points[trial.suggest_int(name, 0, axis.last)]
    return axis.points[trial.suggest_categorical(name, range(len(axis.points)))]


def _trials(axes: list[Axis], rows: Iterable[TrialRow]) -> list[FrozenTrial]:
    """Return the trials with a result and the pending ones as Optuna's trials."""
    distributions = {axis.parameter.name: _distribution(axis) for axis in axes}
    trials = []
    for row in rows:
        result = row.result()
        if result is None and not row.is_pending():
            continue
        places = {
            axis.parameter.name: axis.place(row.values[axis.parameter.name])
            if axis.points
            else axis.unit(row.values[axis.parameter.name])
            for axis in axes
            if axis.parameter.name in row.values
        }
        trials.append(
            create_trial(
                state=TrialState.RUNNING if result is None else TrialState.COMPLETE,
                values=result,
                params=places,
                distributions={name: distributions[name] for name in places},
            )
        )
    return trials


answer = one_by_one(start)
