"""Bayesian optimization: KerasTuner's Gaussian process with upper confidence bound, made stateless.

A fresh oracle is filled from the rows for every suggestion and thrown away after it, which avoids what
goes wrong with a long-lived one: locks that stay held after an error, NaN in its stored state, its own
trial ids and retries. Only `populate_space` is called; it takes no lock and writes no file.

The oracle sees every countable hyperparameter as its place in our own grid. Its own arithmetic on
float steps would take 0.3 for the third of the steps of 0.1 that it is the fourth of.
"""

from collections.abc import Sequence
from typing import Any

import keras_tuner
import numpy as np
import sklearn
from keras_tuner.engine.trial import Trial, TrialStatus

from jobs.contracts.search import SearchSpec
from jobs.contracts.search_space import (
    FixedParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
    Value,
    Values,
)
from jobs.contracts.suggest import TrialRow
from workers.engine.search.draws import drawn, unseen
from workers.engine.search.history import History
from workers.engine.search.keras_tuner_regressor import QuickRegressor
from workers.engine.search.proposals import one_by_one
from workers.engine.search.seeds import seed_of

POINTS_PER_DIMENSION = 3
CANDIDATES = 50
"""How many unseen configurations compete when the oracle proposes one that has a trial already."""


def propose(history: History) -> dict[str, Value]:
    """Return the next configuration; trials without a score yet push it away from them."""
    search, number = history.search, history.next_number
    rows = [row for row in history.rows if row.inside and (row.score is not None or row.is_pending())]
    if sum(row.score is not None for row in rows) < initial_points(search):
        return _unseen(history, number)
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        return _by_model(history, rows, number)


def _unseen(history: History, name: int | str) -> dict[str, Value]:
    return unseen(history, name) or drawn(history)


def initial_points(search: SearchSpec) -> int:
    """Return how many trials must have a score before the first model: 3 a dimension, at most half."""
    dimensions = sum(not isinstance(p, FixedParameter) for p in search.space)
    return max(3, min(POINTS_PER_DIMENSION * dimensions, search.max_trials // 2))


def _by_model(history: History, rows: Sequence[TrialRow], number: int) -> dict[str, Value]:
    """Return the oracle's proposal or, as it does not look for repetitions itself, the next best one."""
    search = history.search
    oracle = _filled(search, rows, number)
    values = from_oracle(search.space, oracle.populate_space(str(number))["values"])
    return _most_promising(oracle, history, number) if history.is_seen(values) else values


def _filled(search: SearchSpec, rows: Sequence[TrialRow], number: int) -> Any:
    """Return an oracle that knows every trial with a score and every one that may still get one."""
    oracle = _oracle(search, number)
    trials = {str(row.number): _trial(oracle, search.space, row) for row in rows}
    oracle.trials = {str(row.number): trials[str(row.number)] for row in rows if row.score is not None}
    waiting = {str(row.number): trials[str(row.number)] for row in rows if row.is_pending()}
    if waiting:
        # The pessimistic guess for a pending trial comes from the model: fit it to real scores first,
        # or it guesses 1 for an error of 0.03.
        oracle.gpr.fit(*oracle._vectorize_trials())
        oracle.trials |= waiting
        oracle.ongoing_trials = waiting
    return oracle


def _most_promising(oracle: Any, history: History, number: int) -> dict[str, Value]:
    """Return, of some random unseen configurations, the one with the lowest confidence bound."""
    search = history.search
    draws = (unseen(history, f"{number}/{i}") for i in range(CANDIDATES))
    candidates = [values for values in draws if values is not None]
    if not candidates:  # the space is used up: repeat
        return drawn(history)
    points = np.array([_vector(oracle, to_oracle(search.space, values)) for values in candidates])
    mean, deviation = oracle.gpr.predict(points, return_std=True)
    return candidates[int(np.argmin(mean - oracle.beta * deviation))]


def _vector(oracle: Any, values: Values) -> list[float]:
    """Place a configuration in the oracle's unit cube; what is inactive stands at its default."""
    return [hp.value_to_prob(values.get(hp.name, hp.default)) for hp in oracle._nonfixed_space()]


def _oracle(search: SearchSpec, number: int) -> Any:
    """Return an empty oracle whose random numbers depend on the search's seed and the trial's number.

    Were it seeded alike for every trial, each would start its optimizer from the same 50 points.
    """
    oracle = keras_tuner.oracles.BayesianOptimizationOracle(
        objective=keras_tuner.Objective(search.objective.metric, search.objective.direction),
        hyperparameters=keras_tuner.HyperParameters.from_config(to_config(search.space)),
        num_initial_points=1,
        tune_new_entries=False,
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
    """Return the space as KerasTuner's JSON, new each time: its `from_config` changes what it is given."""
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
    """Translate a condition's values; -1, no place in a grid, where the parent can have none of them."""
    reachable = [v for v in values if v in parent.grid()] if parent.is_countable() else values
    return [_encode(parent, v) for v in reachable] or [-1]


def _encode(parameter: Parameter, value: Value) -> Value:
    """Turn one of our values into the oracle's; a value beside the grid goes to its nearest point."""
    if not parameter.is_countable():
        return value
    points = parameter.grid()
    if isinstance(parameter, IntParameter | FloatParameter) and value not in points:
        return min(range(len(points)), key=lambda i: abs(float(points[i]) - float(value)))
    return points.index(value)


def _decode(parameter: Parameter, value: Value) -> Value:
    """Turn one of the oracle's values into ours; at the end of its scale it oversteps by one."""
    if parameter.is_countable():
        return parameter.grid()[int(value)]
    if isinstance(parameter, IntParameter):
        return min(max(int(value), parameter.min), parameter.max)
    if isinstance(parameter, FloatParameter):
        return min(max(float(value), parameter.min), parameter.max)
    return value


def to_oracle(space: Space, values: Values) -> dict[str, Value]:
    """Translate a configuration of ours; names that the space does not know are left out."""
    return {p.name: _encode(p, values[p.name]) for p in space if p.name in values}


def from_oracle(space: Space, values: Values) -> dict[str, Value]:
    """Translate a configuration of the oracle's, active hyperparameters only, in the space's order."""
    ours: dict[str, Value] = {}
    for parameter in space:
        if parameter.is_active(ours):
            ours[parameter.name] = _decode(parameter, values[parameter.name])
    return ours


answer = one_by_one(lambda _: propose)
