"""Estimates the importance of each hyperparameter with a random forest fitted to the trials."""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from jobs.contracts.analysis import Importance, ImportanceAnswer, ImportanceRequest, Influence
from workers.engine.analysis import influence
from workers.engine.analysis.fanova import main_effects

TREES = 64
"""Number of trees of the forest."""
MAX_TRIALS = 2000
"""More trials hardly change the result and take too long for an interactive chart."""

INACTIVE = 0.5
"""Value of an inactive hyperparameter: the middle of the unit interval, like a default."""

Floats = NDArray[np.float64]


def importance(request: ImportanceRequest) -> ImportanceAnswer:
    """Fit a random forest to the trials and compute the importance of each hyperparameter.

    Functional ANOVA: F. Hutter, H. Hoos, K. Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter
    Importance", ICML 2014. Decrease of impurity: L. Breiman, "Random Forests", 2001.

    Args:
        request: values in the unit cube, (hyperparameters, trials), and scores, (trials,).

    Returns:
        Importances in descending order, and how well the forest predicts trials (out-of-bag R²).

    Raises:
        ValueError: columns and scores differ in length, or every score is the same.
    """
    columns, scores = _sample(request)
    values = np.where(np.isnan(columns), INACTIVE, columns)
    if np.ptp(scores) == 0:
        raise ValueError("all trials have the same score, so importance is undefined")
    # A leaf of one trial would fit its noise.
    forest = RandomForestRegressor(
        n_estimators=TREES, min_samples_leaf=2, oob_score=True, n_jobs=1, random_state=request.seed
    ).fit(values, scores)
    shares = np.array([main_effects(tree.tree_, values.shape[1]) for tree in forest.estimators_])
    means, spreads = shares.mean(axis=0), shares.std(axis=0)
    found = (
        Importance(
            name=name,
            alone=round(float(means[index]), 5),
            spread=round(float(spreads[index]), 5),
            impurity=round(float(forest.feature_importances_[index]), 5),
            influence=_influence(request, name, columns[:, index], scores),
        )
        for index, name in enumerate(request.names)
    )
    ranked = sorted(found, key=lambda entry: (-entry.alone, entry.name))
    explained = round(float(forest.oob_score_), 4)
    return ImportanceAnswer(used=len(scores), trees=TREES, explained=explained, importances=tuple(ranked))


def _influence(request: ImportanceRequest, name: str, column: Floats, scores: Floats) -> Influence:
    goodness = scores if request.direction == "max" else -scores
    choices = request.choices.get(name)
    if choices is None:
        return influence.of_number(column, goodness)
    return influence.of_choice(np.floor(column * len(choices)), goodness, choices)


def _sample(request: ImportanceRequest) -> tuple[Floats, Floats]:
    """Return values (trials, hyperparameters) and scores of at most `MAX_TRIALS` trials.

    Inactive values are NaN.
    """
    scores = np.array(request.scores)
    values = np.array(request.columns, dtype=float).T
    if values.shape != (len(scores), len(request.names)):
        raise ValueError(f"{len(request.names)} names, {len(scores)} scores, but columns of {values.shape}")
    if len(scores) > MAX_TRIALS:
        chosen = np.random.default_rng(request.seed).choice(len(scores), MAX_TRIALS, replace=False)
        return values[chosen], scores[chosen]
    return values, scores
