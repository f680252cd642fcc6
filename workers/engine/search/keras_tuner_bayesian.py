"""Bayesian optimization with KerasTuner's Gaussian process and upper confidence bound, without state.

For every suggestion a new oracle is filled from the rows and discarded afterwards. This avoids the problems
of a long-lived oracle: locks that are not released after an error, NaN in its stored state, its own trial ids
and retries. Only `populate_space` is called, which takes no lock and writes no file.

The oracle gets every countable hyperparameter as its index in our grid, since its own arithmetic on float
steps has rounding errors: for steps of 0.1 it takes 0.3 for the third step instead of the fourth.
"""

from collections.abc import Sequence
from typing import Any

import keras_tuner
import numpy as np
import sklearn
from keras_tuner.engine.trial import Trial, TrialStatus

from jobs.messages.suggest import TrialRow
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import (
    FixedParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
    Value,
    Values,
)
from workers.engine.search.draws import draw_any, draw_unseen
from workers.engine.search.history import History
from workers.engine.search.keras_tuner_regressor import QuickRegressor
from workers.engine.search.proposals import one_by_one
from workers.engine.search.seeds import seed_of

POINTS_PER_DIMENSION = 3
CANDIDATES = 50
"""Number of unseen configurations to choose from when the oracle proposes one that has a trial."""


def propose(history: History) -> dict[str, Value]:
    """Return the next configuration. Pending trials count with a pessimistic score."""
    search, number = history.search, history.next_number
    rows = [row for row in history.rows if row.inside and (row.score is not None or row.is_pending())]
    if sum(row.score is not None for row in rows) < initial_points(search):
        return draw_unseen(history, number) or draw_any(history)
    # The oracle predicts thousands of points, and scikit-learn would validate its arguments each time.
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        oracle = _filled_oracle(search, rows, number)
        values = from_oracle(search.space, oracle.populate_space(str(number))["values"])
        return _most_promising(oracle, history, number) if history.is_seen(values) else values


def initial_points(search: SearchSpec) -> int:
    """Return how many scores the first model needs: 3 per dimension, at most half the search."""
    dimensions = sum(not isinstance(p, FixedParameter) for p in search.space)
    return max(3, min(POINTS_PER_DIMENSION * dimensions, search.max_trials // 2))


def _filled_oracle(search: SearchSpec, rows: Sequence[TrialRow], number: int) -> Any:
    """Return an oracle with all trials that have a score and all pending ones."""
    oracle = _empty_oracle(search, number)
    trials = {str(row.number): _trial(oracle, search.space, row) for row in rows}
    oracle.trials = {str(row.number): trials[str(row.number)] for row in rows if row.score is not None}
    waiting = {str(row.number): trials[str(row.number)] for row in rows if row.is_pending()}
    if waiting:
        # The model makes the pessimistic estimate for pending trials, so it is fitted to real scores first;
        # otherwise it estimates 1 where errors are 0.03.
        oracle.gpr.fit(*oracle._vectorize_trials())
        oracle.trials |= waiting
        oracle.ongoing_trials = waiting
    return oracle


def _most_promising(oracle: Any, history: History, number: int) -> dict[str, Value]:
    """Return, among some random unseen configurations, the one with the lowest confidence bound."""
    search = history.search
    draws = (draw_unseen(history, f"{number}/{i}") for i in range(CANDIDATES))
    candidates = [values for values in draws if values is not None]
    if not candidates:  # all configurations have been tried: repeat one
        return draw_any(history)
    # Coordinates in the oracle's unit cube; an inactive hyperparameter has its default there.
    hps = oracle._nonfixed_space()
    translated = [to_oracle(search.space, values) for values in candidates]
    points = [[hp.value_to_prob(values.get(hp.name, hp.default)) for hp in hps] for values in translated]
    mean, deviation = oracle.gpr.predict(np.array(points), return_std=True)
    return candidates[int(np.argmin(mean - oracle.beta * deviation))]


def _empty_oracle(search: SearchSpec, number: int) -> Any:
    """Return an empty oracle, seeded by the search's seed and the trial's number."""
    oracle = keras_tuner.oracles.BayesianOptimizationOracle(
        objective=keras_tuner.Objective(search.objective.metric, search.objective.direction),
        hyperparameters=keras_tuner.HyperParameters.from_config(to_config(search.space)),
        # `propose` calls the oracle only once there are enough results for a model
        num_initial_points=1,
        tune_new_entries=False,
        # With one seed for all trials, its optimizer would always start from the same 50 points.
        seed=seed_of(search.seed, number),
    )
    oracle.gpr = QuickRegressor(**oracle.gpr.get_params(deep=False))
    oracle.verbose = 0
    return oracle


def _trial(oracle: Any, space: Space, row: TrialRow) -> Any:
    hyperparameters = oracle.get_space()
    hyperparameters.values = to_oracle(space, row.values)
    status = TrialStatus.RUNNING if row.score is None else TrialStatus.COMPLETED
    trial = Trial(hyperparameters, trial_id=str(row.number), status=status)
    trial.score = row.score
    return trial


def to_config(space: Space) -> dict[str, Any]:
    """Return the space as KerasTuner's JSON; a new object, since its `from_config` modifies the argument."""
    # Indices, see the module's docstring.
    parents = {parameter.name: parameter for parameter in space}
    return {"space": [_entry(parameter, parents) for parameter in space], "values": {}}


def _entry(parameter: Parameter, parents: dict[str, Parameter]) -> dict[str, Any]:
    conditions = [
        {
            "class_name": "Parent",
            "config": {"name": c.name, "values": _possible(parents[c.name], c.in_)},
        }
        for c in parameter.conditions()
    ]
    common = {"name": parameter.name, "conditions": conditions}
    if isinstance(parameter, FixedParameter):
        return {"class_name": "Fixed", "config": {**common, "value": 0}}
    if isinstance(parameter, IntParameter | FloatParameter) and not parameter.is_countable():
        kind = "Int" if isinstance(parameter, IntParameter) else "Float"
        bounds = {"min_value": parameter.min, "max_value": parameter.max, "sampling": parameter.sampling}
        return {"class_name": kind, "config": {**common, **bounds}}
    last = len(parameter.grid()) - 1
    return {"class_name": "Int", "config": {**common, "min_value": 0, "max_value": last, "step": 1}}


def _possible(parent: Parameter, values: Sequence[Value]) -> list[Value]:
    """Translate a condition's values; -1, which is no index, if the parent can have none."""
    reachable = [v for v in values if v in parent.grid()] if parent.is_countable() else values
    return [_encode(parent, v) for v in reachable] or [-1]


def _encode(parameter: Parameter, value: Value) -> Value:
    """Translate a value for the oracle; a value outside the grid becomes its nearest point."""
    if not parameter.is_countable():
        return value
    points = parameter.grid()
    if isinstance(parameter, IntParameter | FloatParameter) and value not in points:
        return min(range(len(points)), key=lambda i: abs(float(points[i]) - float(value)))
    return points.index(value)


def _decode(parameter: Parameter, value: Value) -> Value:
    """Translate an oracle's value; it may exceed the end of its scale by one."""
    if parameter.is_countable():
        return parameter.grid()[int(value)]
    if isinstance(parameter, IntParameter):
        return min(max(int(value), parameter.min), parameter.max)
    if isinstance(parameter, FloatParameter):
        return min(max(float(value), parameter.min), parameter.max)
    return value


def to_oracle(space: Space, values: Values) -> dict[str, Value]:
    """Translate a configuration for the oracle; names that are not in the space are left out."""
    return {p.name: _encode(p, values[p.name]) for p in space if p.name in values}


def from_oracle(space: Space, values: Values) -> dict[str, Value]:
    """Translate an oracle's configuration: active hyperparameters in the space's order."""
    ours: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(ours):
            ours[parameter.name] = _decode(parameter, values[parameter.name])
    return ours


answer = one_by_one(lambda _: propose)
