"""Bayesian optimization: maximizes a Gaussian process' expected improvement.

Kernel: Matérn 5/2 with a length scale per column (automatic relevance determination) plus noise, by
scikit-learn. Acquisition: expected improvement over random configurations and the best ones' neighbours, so
that a suggestion needs one prediction instead of thousands.

Sources: Snoek, Larochelle and Adams, Practical Bayesian Optimization, NeurIPS 2012, section 3; expected
improvement: Jones, Schonlau and Welch, J. Global Optimization 13 (1998), section 4.1; pending trials:
Ginsbourger, Le Riche and Carraro, Kriging Is Well-Suited to Parallelize Optimization, 2010, section 4.1.
"""

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from jobs.messages.suggest import TrialRow
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import FixedParameter, Value
from workers.engine.search.axes import axes_of, draw, neighbour
from workers.engine.search.columns import Columns
from workers.engine.search.draws import draw_any, draw_unseen
from workers.engine.search.history import History
from workers.engine.search.proposals import one_by_one
from workers.engine.search.seeds import seed_of

Floats = npt.NDArray[np.float64]

ROWS = 500
"""Maximum number of results, the best quarter and the newest: the cost grows with the cube of the number."""
ROWS_FOR_KERNEL = 100
"""Number of results to fit the kernel's parameters to, which takes dozens of fits."""
STARTS, STEPS = 2, 20
"""Number of starts and steps of L-BFGS for the kernel's parameters."""
RANDOM, NEARBY, LEADERS = 600, 480, 6
"""Number of candidates drawn uniformly, drawn near the best trials, and number of these best trials."""
SPREADS = (0.2, 0.05, 0.01)
"""Distances of neighbours as fractions of an axis."""
RELEVANCE_UP_TO = 32
"""With more columns all share one length scale: there are too few trials to estimate them separately."""


def initial_points(search: SearchSpec) -> int:
    """Return how many results the first model needs: 2 per dimension, at most a third of the search."""
    dimensions = sum(not isinstance(p, FixedParameter) for p in search.space)
    return max(3, min(2 * dimensions, search.max_trials // 3))


def start(history: History) -> Callable[[History], dict[str, Value]]:
    """Return the function that proposes configurations. The kernel is fitted once per answer."""
    rows = history.model_rows(ROWS)
    scored = [row for row in rows if row.result() is not None]
    if len(scored) < initial_points(history.search):
        return lambda history: draw_unseen(history, history.next_number) or draw_any(history)
    with _without_validation():
        model = Model(history, scored)
    pending = [row for row in rows if row.result() is None]
    first_new = history.next_number

    def propose(history: History) -> dict[str, Value]:
        # The suggestions of this answer are pending too.
        waiting = [*pending, *(row for row in history.rows if row.number >= first_new)]
        with _without_validation():
            return model.most_promising(history, waiting)

    return propose


class Model:
    """A Gaussian process fitted to costs, and its search for the next configuration."""

    def __init__(self, history: History, scored: Sequence[TrialRow]) -> None:
        search = history.search
        self._axes = axes_of(search.space)
        self._columns = Columns(search.space, self._axes)
        costs = np.array([history.cost(row) for row in scored])
        self._leaders = [scored[i] for i in np.argsort(costs, kind="stable")[:LEADERS]]
        self._x = self._columns.matrix([row.values for row in scored])
        self._y = clipped(costs)
        self._kernel, self._noise = self._fit_kernel(seed_of(search.seed, len(scored)))

    def most_promising(self, history: History, pending: Sequence[TrialRow]) -> dict[str, Value]:
        """Return the candidate with the largest expected improvement over the best result so far."""
        candidates = self._candidates(history)
        x, y = self._x, self._y
        process = self._posterior(x, y)
        if pending:
            # With their predicted results, no improvement is expected near them.
            there = self._columns.matrix([row.values for row in pending])
            process = self._posterior(np.vstack([x, there]), np.append(y, process.predict(there)))
        mean, deviation = process.predict(self._columns.matrix(candidates), return_std=True)
        gain = expected_improvement(mean, deviation, best=float(y.min()))
        # Far from an improvement all gains underflow to 0; then the lowest confidence bound decides.
        return candidates[int(np.lexsort((mean - 2 * deviation, -gain))[0])]

    def _candidates(self, history: History) -> list[dict[str, Value]]:
        """Draw candidates; if duplicates are replaced, only those without a trial, unless all have one."""
        space, seed = history.search.space, seed_of(history.search.seed, history.next_number)
        rng = random.Random(seed)  # noqa: S311  repeatable, not secret
        candidates = [draw(space, self._axes, rng) for _ in range(RANDOM)]
        for i in range(NEARBY):
            leader = self._leaders[i % len(self._leaders)]
            candidates.append(neighbour(space, self._axes, leader.values, SPREADS[i % len(SPREADS)], rng))
        if history.search.duplicates != "replace":
            return candidates
        return [values for values in candidates if not history.is_seen(values)] or candidates

    def _posterior(self, x: Floats, y: Floats) -> Any:
        process = GaussianProcessRegressor(self._kernel, alpha=self._noise, optimizer=None, normalize_y=True)
        return process.fit(x, y)

    def _fit_kernel(self, seed: int) -> tuple[Kernel, float]:
        """Return the kernel with the largest likelihood and the noise variance."""
        width = self._x.shape[1]
        scales = np.full(width if width <= RELEVANCE_UP_TO else 1, 0.5)
        kernel = ConstantKernel(1.0, (0.05, 20.0)) * Matern(scales, (0.05, 20.0), nu=2.5)
        kernel += WhiteKernel(1e-3, (1e-6, 1.0))
        # All rows, or some at equal distances: the rows are in the order of their trials.
        count = len(self._y)
        chosen = np.unique(np.linspace(0, count - 1, min(count, ROWS_FOR_KERNEL)).round().astype(np.int64))
        process = GaussianProcessRegressor(
            kernel,
            optimizer=_minimize,
            n_restarts_optimizer=STARTS - 1,
            normalize_y=True,
            random_state=seed,
        )
        with warnings.catch_warnings():
            # A length scale at its bound means an irrelevant column.
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(self._x[chosen], self._y[chosen])
        # The noise is added to the training points only: a prediction is of the mean result.
        return process.kernel_.k1, float(process.kernel_.k2.noise_level)


def _without_validation() -> Any:
    # scikit-learn would check its arguments again in each of dozens of fits.
    return sklearn.config_context(assume_finite=True, skip_parameter_validation=True)


def _minimize(loss: Callable[..., Any], begin: Floats, bounds: Floats) -> tuple[Floats, float]:
    optimum = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
    return optimum.x, float(optimum.fun)


def clipped(costs: Floats) -> Floats:
    """Return costs with large values clipped.

    The limit is three times as far above the median as the best cost is below it.
    """
    # A learning rate that is too high gives losses of any size, which would dominate the fit of the model.
    middle = float(np.median(costs))
    return np.minimum(costs, middle + 3 * max(middle - float(costs.min()), 1e-12))


def expected_improvement(mean: Floats, deviation: Floats, *, best: float) -> Floats:
    """Return each point's expected improvement over `best`; mean and deviation are (points,)."""
    deviation = np.maximum(deviation, 1e-12)
    z = (best - mean) / deviation
    return (best - mean) * norm.cdf(z) + deviation * norm.pdf(z)


answer = one_by_one(start)
