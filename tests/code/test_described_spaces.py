"""The arguments of a pasted tuner become the experiment; those without a counterpart are named."""

import json
from pathlib import Path

import pytest

from jobs.messages.code import CodeSearch
from jobs.spec.experiment import ExperimentSpec
from tests.code.test_notebooks import found_in, stored
from tests.factories import make_dataset
from tests.people import People, browser_of

BUILDER = """import keras
import keras_tuner as kt

def make(hp):
    hp.Int("units", 8, 512)
    return keras.Sequential([keras.layers.Dense(1)])

"""
SPACE = """hp = kt.HyperParameters()
hp.Int("units", 32, 64, step=16)
rate = hp.Float("rate", min_value=1e-4, max_value=1e-2, sampling="log")
hp.Choice("optimizer", ["adam", "sgd"], default="sgd")
hp.Boolean("wide")
hp.Fixed("depth", value=3)
"""


def search_of(folder: Path, text: str) -> CodeSearch:
    search = found_in(folder, BUILDER + text).search
    assert search is not None
    return search


def test_the_hyperparameters_of_a_tuner_narrow_the_space_and_fix_values(tmp_path: Path) -> None:
    made = "tuner = kt.RandomSearch(make, 'val_loss', hyperparameters=hp, tune_new_entries=True)\n"
    search = search_of(tmp_path, f"{SPACE}{made}tuner.search(x, y)\n")
    assert search.space == [
        {"name": "units", "kind": "int", "min": 32, "max": 64, "step": 16},
        {"name": "rate", "kind": "float", "min": 1e-4, "max": 1e-2, "sampling": "log"},
        {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd"], "default": "sgd"},
        {"name": "wide", "kind": "boolean"},
    ]
    assert search.hyperparameters == {"depth": 3}
    assert search.left_out == []


@pytest.mark.parametrize(
    ("more", "left_out"),
    [
        ("for i in range(3):\n    hp.Int(f'units_{i}', 8, 16)\n", ["the hyperparameter in line 15"]),
        ("hp.Int('units_2', N, 16)\n", ["the hyperparameter in line 14"]),
        ("hp.Choice('layers', [None, [1]])\n", ["the hyperparameter in line 14"]),
        ("with hp.conditional_scope('a', [1]):\n    hp.Int('b', 1, 2)\n", ["the hyperparameter in line 15"]),
    ],
    ids=["a loop", "no constant", "no values of a choice", "a condition"],
)
def test_a_hyperparameter_that_cannot_be_read_is_named_by_its_line(
    tmp_path: Path, more: str, left_out: list[str]
) -> None:
    made = "tuner = kt.RandomSearch(make, 'val_loss', hyperparameters=hp)\ntuner.search(x, y)\n"
    search = search_of(tmp_path, SPACE + more + made)
    assert search.left_out == left_out
    assert len(search.space) == 4


def test_hyperparameters_that_no_assignment_of_the_file_makes_are_named(tmp_path: Path) -> None:
    text = "tuner = kt.RandomSearch(make, 'val_loss', hyperparameters=get_space())\ntuner.search(x, y)\n"
    assert search_of(tmp_path, text).left_out == ["hyperparameters"]


def test_arguments_by_their_places_are_read(tmp_path: Path) -> None:
    text = (
        "tuner = kt.GridSearch(make, 'val_loss', 5, 7, None, False, True, 0, 4)\ntuner.search(x, y, 16, 9)\n"
    )
    search = search_of(tmp_path, text)
    assert (search.max_trials, search.seed, search.max_failures) == (5, 7, 4)
    assert (search.batch_size, search.epochs) == (16, 9)
    assert search.left_out == [
        "allow_new_entries",
        "max_retries_per_trial",
        "tune_new_entries=False: fix the other hyperparameters in the form",
    ]


def test_arguments_of_a_variable_are_named(tmp_path: Path) -> None:
    text = "tuner = kt.RandomSearch(make, objective='val_loss', **settings)\ntuner.search(*data, epochs=2)\n"
    search = search_of(tmp_path, text)
    assert search.left_out == ["**settings", "*data"]
    assert search.epochs == 2


def test_settings_without_a_counterpart_are_named(tmp_path: Path) -> None:
    text = (
        "tuner = kt.RandomSearch(make, objective='val_loss', max_model_size=1000, overwrite=True, "
        "loss='mse', directory='d')\ntuner.search(x, y, class_weight={0: 1.0}, shuffle=False)\n"
    )
    search = search_of(tmp_path, text)
    assert search.left_out == ["max_model_size", "loss", "class_weight"]
    assert search.shuffle is False


def test_the_experiment_begins_with_them(people: People) -> None:
    make_dataset("flowers", project=people.project, by=people.member)
    browser = browser_of(people.trainer)
    made = (
        "tuner = kt.BayesianOptimization(make, 'val_loss', hyperparameters=hp, seed=3, "
        "executions_per_trial=2, max_consecutive_failed_trials=8)\ntuner.search(x, y, shuffle=False)\n"
    )
    digest = stored(browser, f"{BUILDER}{SPACE}{made}")["digest"]
    address = f"/p/yard/experiments/new?code={digest}&entry=make&dataset=flowers"
    spec = json.loads(browser.get(address).context["entries"]["spec"])
    assert [row["name"] for row in spec["search"]["space"]] == ["units", "rate", "optimizer", "wide"]
    assert spec["model"]["hyperparameters"] == {"depth": 3}
    assert spec["search"]["max_consecutive_failures"] == 8
    assert (spec["search"]["seed"], spec["search"]["executions_per_trial"]) == (3, 2)
    assert spec["fit"]["shuffle"] is False
    ExperimentSpec.model_validate(spec)
