import itertools
import json
import math
import os
import pkgutil
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from jobs.messages.suggest import SuggestRequest, TrialRow
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import check_values, grid
from jobs.spec.space.size import grid_size
from tests.engine.search.searching import Values, ask, finished, items, play, search, values_of
from tests.present import present
from workers.engine.search.bayesian import clipped
from workers.engine.search.suggest import suggest

SPACE: list[dict[str, Any]] = [
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


def run(
    spec: SearchSpec,
    trials: int,
    objective: Callable[[Values], float | None],
    parallel: int = 1,
    rows: Iterable[TrialRow] = (),
) -> list[TrialRow]:
    """Simulate a search without failures: ask for a trial, score it, ask again."""
    rows = list(rows)
    while len(rows) < trials:
        answer = ask(spec, rows, min(parallel, trials - len(rows)))
        if answer.exhausted and not answer.suggestions:
            break
        for said in answer.suggestions:
            rows.append(scored(len(rows) + 1, said.values, objective(said.values), epochs=said.epochs))
    return rows


def scored(number: int, values: Values, score: float | None, **more: Any) -> TrialRow:
    return TrialRow(number=number, state="completed", values=values, score=score, **more)


def bowl(values: Values) -> float:
    """The minimum is 0, at 48 units and a learning rate of 0.01."""
    return -(((values["units"] - 48) / 48) ** 2) - (math.log10(values["learning_rate"]) + 2) ** 2


@pytest.mark.parametrize("info", ALGORITHMS.values(), ids=list(ALGORITHMS))
def test_every_algorithm_of_the_table_has_an_implementation(info: Any) -> None:
    assert callable(pkgutil.resolve_name(info.answer))


MODELS = ["bayesian", "tpe", "keras_tuner_bayesian"]
ALL = list(ALGORITHMS)


@pytest.mark.parametrize("algorithm", ALL)
def test_suggestions_are_in_the_space_and_have_its_types(algorithm: str) -> None:
    space = [p if "step" in p or p["kind"] not in ("int", "float") else {**p, "step": 4} for p in SPACE]
    spec = search(algorithm, space, max_trials=12)
    trials = 7 if algorithm == "keras_tuner_bayesian" else 12  # a second and a half each, from the seventh on
    for row in run(spec, trials, lambda v: v["units"] / 64, parallel=3):
        assert check_values(spec.space, row.values) == row.values
        assert {name: type(v) for name, v in row.values.items()}.items() >= {
            "units": int, "optimizer": str, "learning_rate": float, "batch_norm": bool, "filters": int,
        }.items()  # fmt: skip
        assert json.loads(json.dumps(row.values)) == row.values


@pytest.mark.parametrize("algorithm", ALL)
def test_the_same_rows_in_any_order_give_the_same_answer(algorithm: str) -> None:
    spec = search(algorithm, SMALL + SPACE[3:4] if algorithm != "grid" else SMALL, max_trials=14)
    rows = run(spec, {"grid": 5, "keras_tuner_bayesian": 8}.get(algorithm, 12), lambda v: v["units"] / 64)
    rows[3] = rows[3].model_copy(update={"state": "running", "score": None})
    shuffled = list(rows)
    random.Random(0).shuffle(shuffled)
    asked = [SuggestRequest(search=spec, trials=tuple(order), count=2) for order in (rows, shuffled)]
    again = SuggestRequest.model_validate_json(asked[0].model_dump_json(by_alias=True))
    first, *others = (suggest(request) for request in (*asked, again))
    assert others == [first, first]


def test_random_trials_do_not_depend_on_the_number_requested_at_once() -> None:
    spec = search(space=SPACE)
    assert run(spec, 12, bowl) == run(spec, 12, bowl, parallel=12)


@pytest.mark.parametrize("algorithm", ["random", "tpe"])
def test_another_seed_gives_other_suggestions(algorithm: str) -> None:
    assert ask(search(algorithm, SPACE, seed=0)) != ask(search(algorithm, SPACE, seed=1))


@pytest.mark.parametrize("algorithm", ["random", "tpe", "hyperband", "asha", "grid"])
def test_the_first_trial_has_the_defaults_unless_a_grid_is_enumerated(algorithm: str) -> None:
    space = [
        {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16, "default": 48},
        {"name": "optimizer", "kind": "choice", "values": ["sgd", "rmsprop", "adam"], "default": "adam"},
        {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1,
         "when": {"name": "optimizer", "in": ["adam"]}},
    ]  # fmt: skip
    spec = search(algorithm, space, "min", max_trials=9)
    first, *others = values_of(ask(spec, count=6))
    defaults = {"units": 48, "optimizer": "adam"}
    assert (defaults.items() <= first.items()) == (algorithm != "grid")
    assert check_values(spec.space, first) == first
    assert not all(defaults.items() <= values.items() for values in others)
    assert values_of(ask(spec, count=1)) == [first]
    later = ask(spec, [TrialRow(number=1, state="completed", score=1.0, values=first)])
    assert values_of(later)[0] != first


@pytest.mark.parametrize("algorithm", ["random", *MODELS])
def test_no_configuration_is_repeated_until_the_space_is_used_up(algorithm: str) -> None:
    spec = search(algorithm, SMALL, max_trials=10)
    rows = run(spec, 10, lambda v: v["units"])
    assert {items(row.values) for row in rows[:8]} == {items(v) for v in grid(spec.space)}
    assert len(rows) == 10 and ask(spec, rows).exhausted


@pytest.mark.parametrize("algorithm", ["random", "grid", "tpe", "bayesian"])
def test_a_repetition_may_be_answered_by_the_completed_trial(algorithm: str) -> None:
    by_hand = [scored(n, v, n, source="hand") for n, v in enumerate(grid(search(space=SMALL).space), 1)]
    spec = search(algorithm, SMALL, max_trials=10, duplicates="answer")
    answer = ask(spec, by_hand, 2)
    assert [s.values for s in answer.suggestions] == [
        by_hand[present(s.answered_by) - 1].values for s in answer.suggestions
    ]


def test_a_repetition_of_a_trial_without_score_is_replaced_and_not_answered() -> None:
    running = [scored(n, v, None).model_copy(update={"state": "running"})
               for n, v in enumerate(grid(search(space=SMALL).space), 1)][:7]  # fmt: skip
    for seed in range(5):
        (said,) = ask(search("random", SMALL, duplicates="answer", seed=seed), running).suggestions
        assert said.answered_by is None and items(said.values) not in {items(row.values) for row in running}


def test_repetitions_are_trained_again_if_the_spec_says_train() -> None:
    one = [{"name": "units", "kind": "choice", "values": [16]}]
    answer = ask(search("random", one, duplicates="train"), [scored(1, {"units": 16}, 0.5)], 3)
    assert [(s.values, s.answered_by) for s in answer.suggestions] == [({"units": 16}, None)] * 3
    by_hand = [scored(1, {"units": 16}, 0.5, source="hand")]
    assert values_of(ask(search("grid", one, duplicates="train"), by_hand)) == [{"units": 16}]
    assert ask(search("grid", one), by_hand).exhausted


def test_a_grid_is_enumerated_once_without_trials_queued_by_users() -> None:
    spec = search("grid", SMALL)
    by_hand = TrialRow(number=1, state="queued", values={"units": 32, "optimizer": "adam"}, source="hand")
    rows = run(spec, 100, lambda v: None, rows=[by_hand])
    assert [row.values for row in rows[1:]] == [v for v in grid(spec.space) if v != by_hand.values]


@pytest.mark.parametrize("counted", [SMALL, SPACE[:3], SPACE[4:], [
    {"name": "a", "kind": "boolean"},
    {"name": "b", "kind": "choice", "values": [1, 2, 3], "when": {"name": "a", "in": [True]}},
    {"name": "c", "kind": "int", "min": 1, "max": 5, "when": {"name": "b", "in": [1, 3]}},
    {"name": "d", "kind": "int", "min": 1, "max": 4, "when": {"name": "a", "in": [False]}},
]])  # fmt: skip
def test_a_grid_is_counted_without_being_enumerated(counted: Any) -> None:
    space = search(space=counted).space
    assert grid_size(space) == sum(1 for _ in grid(space))
    assert grid_size(space, 7) == 7


@pytest.mark.parametrize("algorithm", [a for a in ALL if a != "keras_tuner_bayesian"])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_ends_for_any_order_of_endings_failures_and_missing_scores(
    algorithm: str, seed: int
) -> None:
    space = SMALL if algorithm == "grid" else [*SMALL, SPACE[2], SPACE[3]]
    policy = ("replace", "train" if ALGORITHMS[algorithm].has_rungs else "answer", "train")[seed]
    rows = play(algorithm, space, seed=seed, max_trials=14, duplicates=policy)
    assert finished(rows) and len(rows) <= 14


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
