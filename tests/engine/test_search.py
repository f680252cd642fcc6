import itertools
import json
import math
import os
import random
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from jobs.spec.search import Algorithm, SearchSpec
from jobs.spec.search_space import check_values, grid
from workers.engine.search.request import SuggestRequest, TrialRow, key
from workers.engine.search.suggest import ALGORITHMS, suggest

SPACE = [
    {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16},
    {"name": "optimizer", "kind": "choice", "values": ["rmsprop", "adam"]},
    {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1,
     "when": {"name": "optimizer", "in": ["adam"]}},
    {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
    {"name": "batch_norm", "kind": "boolean"},
    {"name": "filters", "kind": "int", "min": 1, "max": 512, "sampling": "log"},
    {"name": "activation", "kind": "fixed", "value": "relu"},
]  # fmt: skip
SMALL = SPACE[:2]


def search(algorithm="random", space=SPACE, direction="max", **more):
    metric = "val_accuracy" if direction == "max" else "val_loss"
    body = {"algorithm": algorithm, "space": space,
            "objective": {"metric": metric, "direction": direction}, **more}  # fmt: skip
    return SearchSpec.model_validate(body)


def run(spec, trials, objective, parallel=1, rows=()):
    """Play a whole search: ask, score, ask again."""
    rows = list(rows)
    while len(rows) < trials:
        asked = suggest(SuggestRequest(search=spec, trials=rows, count=min(parallel, trials - len(rows))))
        if not asked:
            break
        for values in asked:
            number = max((row.number for row in rows), default=0) + 1
            rows.append(TrialRow(number=number, state="completed", values=values, score=objective(values)))
    return rows


def bowl(values):
    """Best, 0, at 48 units and a learning rate of 0.01."""
    return -(((values["units"] - 48) / 48) ** 2) - (math.log10(values["learning_rate"]) + 2) ** 2


def test_every_algorithm_of_the_spec_has_an_implementation():
    assert set(ALGORITHMS) == set(get_args(Algorithm))


@pytest.mark.parametrize("algorithm", get_args(Algorithm))
def test_suggestions_lie_in_the_space_and_keep_their_types(algorithm):
    space = [p if "step" in p or p["kind"] not in ("int", "float") else {**p, "step": 4} for p in SPACE]
    spec = search(algorithm, space, max_trials=6)
    rows = run(spec, 5, lambda v: v["units"] / 64)
    for row in rows:
        assert check_values(spec.space, row.values) == row.values
        assert {name: type(v) for name, v in row.values.items()}.items() >= {
            "units": int, "optimizer": str, "learning_rate": float, "batch_norm": bool, "filters": int,
        }.items()  # fmt: skip
        assert json.loads(json.dumps(row.values)) == row.values


@pytest.mark.parametrize("algorithm", get_args(Algorithm))
def test_the_same_rows_give_the_same_suggestion_in_whatever_order_they_come(algorithm):
    spec = search(algorithm, SMALL + SPACE[3:4] if algorithm != "grid" else SMALL, max_trials=6)
    rows = run(spec, 4, lambda v: v["units"] / 64)
    shuffled = list(rows)
    random.Random(0).shuffle(shuffled)
    asked = [SuggestRequest(search=spec, trials=tuple(order), count=2) for order in (rows, shuffled)]
    again = SuggestRequest.model_validate_json(asked[0].model_dump_json(by_alias=True))
    assert suggest(asked[0]) == suggest(asked[1]) == suggest(again)


def test_random_trials_do_not_depend_on_how_many_were_asked_for_at_once():
    one_by_one = run(search(), 12, bowl)
    at_once = run(search(), 12, bowl, parallel=12)
    assert one_by_one == at_once


def test_another_seed_searches_elsewhere():
    assert suggest(SuggestRequest(search=search(seed=0))) != suggest(SuggestRequest(search=search(seed=1)))


@pytest.mark.parametrize("algorithm", ["random", "bayesian"])
def test_no_configuration_comes_twice_while_the_space_has_others(algorithm):
    rows = run(search(algorithm, SMALL, max_trials=4), 8, lambda v: v["units"])
    assert {key(row.values) for row in rows} == {key(v) for v in grid(search(space=SMALL).space)}


@pytest.mark.parametrize("algorithm", ["random", "bayesian"])
def test_a_space_that_is_used_up_still_answers(algorithm):
    assert len(run(search(algorithm, SMALL, max_trials=4), 10, lambda v: v["units"])) == 10


def test_a_grid_is_walked_once_around_trials_queued_by_hand():
    spec = search("grid", SMALL)
    by_hand = TrialRow(number=1, state="queued", values={"units": 32, "optimizer": "adam"}, source="manual")
    rows = run(spec, 100, lambda v: None, rows=[by_hand])
    assert [row.values for row in rows[1:]] == [v for v in grid(spec.space) if v != by_hand.values]


def best_of_searches(algorithm, trials=14, **more):
    space = [SPACE[0], SPACE[3]]
    specs = [search(algorithm, space, max_trials=trials, seed=seed, **more) for seed in (0, 1)]
    return sum(max(row.score for row in run(spec, trials, bowl)) for spec in specs)


def test_bayesian_comes_nearer_to_the_optimum_than_random():
    assert best_of_searches("bayesian") > best_of_searches("random") / 2


def test_bayesian_minimizes_exactly_what_it_would_maximize():
    space = [SPACE[0], SPACE[3]]
    down = run(search("bayesian", space, direction="min", max_trials=8), 8, lambda v: -bowl(v))
    up = run(search("bayesian", space, max_trials=8), 8, bowl)
    assert [row.values for row in down] == [row.values for row in up]


def test_parallel_bayesian_suggestions_lie_apart():
    spec = search("bayesian", [SPACE[3]], max_trials=20)
    rows = run(spec, 6, lambda v: -abs(math.log10(v["learning_rate"]) + 2))
    asked = suggest(SuggestRequest(search=spec, trials=rows, count=3))
    exponents = sorted(math.log10(v["learning_rate"]) for v in asked)
    assert all(b - a > 1e-3 for a, b in itertools.pairwise(exponents))


def test_failed_and_unscored_trials_do_not_disturb_the_model():
    spec = search("bayesian", [SPACE[0], SPACE[3]], max_trials=8)
    rows = run(spec, 6, bowl)
    odd = [
        TrialRow(number=7, state="failed", values={"units": 16, "learning_rate": 0.05}),
        TrialRow(number=8, state="stopped", values={"units": 16, "learning_rate": 0.06}),
        TrialRow(number=9, state="running", values={"units": 17, "learning_rate": 0.01}, source="manual"),
    ]
    (values,) = suggest(SuggestRequest(search=spec, trials=[*rows, *odd]))
    check_values(spec.space, values)


def test_random_and_grid_do_not_import_keras():
    code = (
        "import sys; from workers.engine.search.suggest import suggest;"
        "from workers.engine.search.request import SuggestRequest as R;"
        f"s = {{'space': {SMALL!r}}};"
        "[suggest(R.model_validate({'search': {**s, 'algorithm': a}})) for a in ('random', 'grid')];"
        "sys.exit(bool({'keras', 'jax', 'keras_tuner'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_process_answers_line_by_line_and_ends_at_end_of_file():
    good = SuggestRequest(search=search("bayesian", SPACE[:1], max_trials=4), count=2)
    bad = '{"search": {}}'
    lines = "\n".join([good.model_dump_json(by_alias=True), bad, good.model_dump_json(by_alias=True)])
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-m", "workers.engine.search"],
        input=lines + "\n", text=True, capture_output=True, check=True, timeout=120, env=environment,
    )  # fmt: skip
    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert first == third == {"values": suggest(good)}
    assert "space" in second["error"]


def test_the_quick_gaussian_process_predicts_as_scikit_learn_does():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    from workers.engine.search.gaussian import QuickRegressor

    rng = np.random.default_rng(0)
    x, y, points = rng.random((9, 3)), rng.normal(size=9), rng.random((20, 3))
    settings = {"kernel": Matern(nu=2.5), "normalize_y": True, "alpha": 1e-4, "random_state": 1}
    quick, slow = (kind(**settings).fit(x, y) for kind in (QuickRegressor, GaussianProcessRegressor))
    for a, b in zip(
        quick.predict(points, return_std=True), slow.predict(points, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
