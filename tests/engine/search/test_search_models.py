"""Algorithms with models: they approach the optimum, and use what earlier searches know."""

import itertools
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from jobs.messages.suggest import SuggestRequest, TrialRow
from jobs.spec.space.search_space import check_values, grid
from tests.engine.search.searching import Values, ask, items, search, values_of
from tests.engine.search.test_search import MODELS, SMALL, SPACE, bowl, run, scored
from tests.present import present
from workers.engine.search.bayesian import clipped
from workers.engine.search.suggest import suggest


def medians(
    algorithm: str,
    space: Sequence[Any],
    quality: Callable[[Values], float],
    seeds: Iterable[int],
    **more: Any,
) -> float:
    runs = [run(search(algorithm, space, seed=seed, **more), more["max_trials"], quality) for seed in seeds]
    return statistics.median(max(present(row.score) for row in rows) for rows in runs)


@pytest.mark.parametrize("algorithm", ["bayesian", "tpe"])
def test_models_get_closer_to_the_optimum_than_random(algorithm: str) -> None:
    space = [{**SPACE[0], "step": 1}, SPACE[3]]
    by_chance = medians("random", space, bowl, range(3), max_trials=20)
    assert medians(algorithm, space, bowl, range(3), max_trials=20) > by_chance / 2  # both below 0


def test_the_gaussian_process_finds_the_branch_of_a_conditional_space() -> None:
    space = [*SPACE[1:3], SPACE[3]]

    def quality(values: Values) -> float:
        return bowl({**values, "units": 48}) + (
            1 - abs(values["dropout"] - 0.3) if "dropout" in values else 0
        )

    rows = run(search("bayesian", space, max_trials=24), 24, quality)
    assert max(rows, key=lambda row: present(row.score)).values["optimizer"] == "adam"
    assert sum(row.values["optimizer"] == "adam" for row in rows[12:]) > 8


@pytest.mark.parametrize("algorithm", MODELS)
def test_minimizing_and_maximizing_the_negative_give_the_same_suggestions(algorithm: str) -> None:
    space = [SPACE[0], SPACE[3]]
    down = run(search(algorithm, space, direction="min", max_trials=9), 9, lambda v: -bowl(v))
    up = run(search(algorithm, space, max_trials=9), 9, bowl)
    assert [row.values for row in down] == [row.values for row in up]


@pytest.mark.parametrize("algorithm", ["bayesian", "tpe"])
def test_suggestions_for_several_slots_keep_a_distance(algorithm: str) -> None:
    spec = search(algorithm, [SPACE[3]], max_trials=40)
    rows = run(spec, 12, lambda v: -abs(math.log10(v["learning_rate"]) + 2))
    pending = TrialRow(number=13, state="running", values=values_of(ask(spec, rows))[0])
    asked = [pending.values, *values_of(ask(spec, [*rows, pending], 3))]
    exponents = sorted(math.log10(v["learning_rate"]) for v in asked)
    assert all(b - a > 1e-3 for a, b in itertools.pairwise(exponents))


@pytest.mark.parametrize("algorithm", MODELS)
def test_failed_and_unscored_trials_do_not_affect_the_model(algorithm: str) -> None:
    spec = search(algorithm, [SPACE[0], SPACE[3]], max_trials=20)
    rows = run(search("random", spec.space), 12, bowl)
    odd = [
        TrialRow(number=13, state="failed", values={"units": 16, "learning_rate": 0.05}),
        TrialRow(number=14, state="stopped", values={"units": 16, "learning_rate": 0.06}),
        TrialRow(number=15, state="completed", values={"units": 16, "learning_rate": 0.07}),
        TrialRow(number=16, state="running", values={"units": 17, "learning_rate": 0.01}, source="hand"),
    ]
    (values,) = values_of(ask(spec, [*rows, *odd]))
    check_values(spec.space, values)


def test_a_few_huge_losses_are_clipped() -> None:
    costs = np.array([0.1, 0.2, 0.3, 0.4, 1e9])
    assert clipped(costs).tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.9])


@pytest.mark.parametrize("algorithm", ["bayesian", "tpe"])
def test_an_earlier_search_trains_the_model_and_does_not_count_as_trials(algorithm: str) -> None:
    spec = search(algorithm, [SPACE[0], SPACE[3]], max_trials=5, warm_start=7)
    earlier = [
        row.model_copy(update={"source": "earlier"}) for row in run(search("random", spec.space), 30, bowl)
    ]
    cold: list[TrialRow] = run(spec, 5, bowl)
    warm: list[TrialRow] = []
    for _ in range(5):
        (values,) = values_of(ask(spec, [*earlier, *warm]))
        warm.append(scored(len(warm) + 1, values, bowl(values)))
    assert statistics.mean(present(r.score) for r in warm) > statistics.mean(present(r.score) for r in cold)
    assert ask(spec, [*earlier, *warm]).exhausted


@pytest.mark.parametrize("algorithm", ["random", "grid", "hyperband", "asha"])
def test_algorithms_without_warm_start_ignore_an_earlier_search(algorithm: str) -> None:
    spec = search(algorithm, SMALL, warm_start=7)
    earlier = [scored(n, v, n, source="earlier") for n, v in enumerate(grid(spec.space), 1)]
    assert ask(spec, earlier, 3) == ask(spec, [], 3)


def test_parzen_estimators_use_several_objectives() -> None:
    objectives = [{"metric": "val_accuracy", "direction": "max"}, {"metric": "val_loss", "direction": "min"}]
    spec = search("tpe", [SPACE[0], SPACE[3]], objectives=objectives, max_trials=20)
    rows = [
        row.model_copy(update={"scores": (row.score, -present(row.score))})
        for row in run(search("random", spec.space), 15, bowl)
    ]
    asked = values_of(ask(spec, [*rows, TrialRow(number=16, state="running", values=rows[0].values)], 2))
    assert len({items(check_values(spec.space, values)) for values in asked}) == 2


def test_cheap_algorithms_import_nothing_large() -> None:
    code = (
        "import sys; from workers.engine.search.suggest import suggest;"
        "from jobs.spec.algorithms import ALGORITHMS;"
        "from jobs.messages.suggest import SuggestRequest as R;"
        f"s = {{'space': {SMALL!r}}};"
        "cheap = [name for name, info in ALGORITHMS.items() if not info.own_process];"
        "[suggest(R.model_validate({'search': {**s, 'algorithm': name}})) for name in cheap];"
        "sys.exit(bool({'keras', 'jax', 'keras_tuner', 'optuna', 'sklearn', 'numpy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_process_answers_line_by_line_and_ends_at_end_of_file() -> None:
    good = SuggestRequest(search=search("tpe", SPACE[:1], max_trials=4), count=2)
    bad = '{"search": {"space": 1}}'
    lines = "\n".join([good.model_dump_json(by_alias=True), bad, good.model_dump_json(by_alias=True)])
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-m", "workers.engine.search"],
        input=lines + "\n", text=True, capture_output=True, check=True, timeout=120, env=environment,
    )  # fmt: skip
    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert first == third == {"answer": suggest(good).model_dump(mode="json")}
    assert "space" in second["error"]


def test_the_fast_gaussian_process_predicts_like_scikit_learn() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    from workers.engine.search.keras_tuner_regressor import QuickRegressor

    rng = np.random.default_rng(0)
    x, y, points = rng.random((9, 3)), rng.normal(size=9), rng.random((20, 3))
    settings = {"kernel": Matern(nu=2.5), "normalize_y": True, "alpha": 1e-4, "random_state": 1}
    quick, slow = (kind(**settings).fit(x, y) for kind in (QuickRegressor, GaussianProcessRegressor))
    for a, b in zip(
        quick.predict(points, return_std=True), slow.predict(points, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
