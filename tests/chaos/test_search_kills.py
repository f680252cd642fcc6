"""SIGKILL at seeded random times while searches of every algorithm run on two slots.

`TRAINYARD_CHAOS_SEARCH_KILLS` is how many kills there are in all, a few for each search: `make test` plays a
search of the first three algorithms, `make chaos` ten of each. `TRAINYARD_CHAOS_SEED` is the first search's
seed. Random and grid search must end with the trials, values and results of an unbroken one. The other
algorithms' choices depend on the trials that had ended at each request, which a kill changes: no trial may be
lost or end twice, and budgets hold.
"""

import itertools
import os
import random
import time
from typing import Any

import pytest

from tests.chaos.harness import KINDS, Round
from tests.flow.specs import Spec, search, spec
from tests.flow.yard import RunningYard

KILLS = int(os.environ.get("TRAINYARD_CHAOS_SEARCH_KILLS", "12"))
FIRST = int(os.environ.get("TRAINYARD_CHAOS_SEED", "1"))
KILLS_A_SEARCH = 4
SECONDS = 4.0
"""Over which the kills are drawn; an unbroken search of these takes about as long."""
EPOCHS = 81
"""With a checkpoint each: many moments to die in, each of which costs every process some CPU."""
MORTAL = tuple(kind for kind in KINDS if kind not in ("model", "modelforks", "serving"))
UNITS = {"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8}
RATE = {"name": "learning_rate", "kind": "float", "min": 1e-3, "max": 1e-1, "sampling": "log"}
STEPPED = {"name": "learning_rate", "kind": "choice", "values": [0.002, 0.01, 0.05]}
RUNGS = {"options": {"factor": 3, "min_epochs": 9}, "executions_per_trial": 1, "max_trials": 6}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "random": {"space": [UNITS, RATE], "max_trials": 4},
    "bayesian": {"space": [UNITS, RATE], "max_trials": 4},
    "hyperband": {"space": [UNITS, RATE], **RUNGS},
    "grid": {"space": [UNITS, STEPPED], "max_trials": 4},
    "asha": {"space": [UNITS, RATE], **RUNGS},
}
UNMOVED = ("random", "grid")

pytestmark = pytest.mark.timeout(3600)


def body(algorithm: str) -> Spec:
    return spec(
        search=search(algorithm, **ALGORITHMS[algorithm]),
        fit={"epochs": EPOCHS, "batch_size": 16, "learning_rate": 0.01},
        resources={"max_restarts": 100},
    )


@pytest.fixture(scope="module")
def unbroken(chaos_installation: RunningYard) -> dict[str, dict[str, Any]]:
    """The results without a kill, for the searches that a kill must not change."""
    calm = Round(chaos_installation, seed=0)
    played = [algorithm for algorithm in UNMOVED if algorithm in dict(plays())]
    for algorithm in played:
        calm.submit_one(algorithm, body(algorithm))
    calm.finish([])
    return dict(zip(played, calm.check(), strict=True))


def plays() -> list[tuple[str, int]]:
    """Return algorithm and seed of each search, so that all their kills come to `KILLS` at least."""
    seeds = itertools.count(FIRST)
    endless = ((algorithm, seed) for seed in seeds for algorithm in ALGORITHMS)
    return list(itertools.islice(endless, -(-KILLS // KILLS_A_SEARCH)))


@pytest.mark.parametrize(("algorithm", "seed"), plays())
def test_a_search_ends_correctly_despite_kills(
    algorithm: str, seed: int, chaos_installation: RunningYard, unbroken: dict[str, dict[str, Any]]
) -> None:
    round_ = Round(chaos_installation, seed)
    try:
        facts = play(round_, algorithm)
        if algorithm in UNMOVED:
            assert facts == unbroken[algorithm], "it did not end as an unbroken one"
    except AssertionError as error:
        replay = f"TRAINYARD_CHAOS_SEED={seed} make chaos ARGS='-k {algorithm}-{seed}'"
        raise AssertionError("\n".join([replay, *round_.history, str(error)])) from error


def play(round_: Round, algorithm: str) -> dict[str, Any]:
    """Run one search under kills; return its result."""
    rng = random.Random(f"{algorithm}/{round_.seed}")
    plan = sorted((rng.uniform(0, SECONDS), rng.choice(MORTAL)) for _ in range(KILLS_A_SEARCH))
    round_.submit_one(algorithm, body(algorithm))
    started = time.monotonic()
    for moment, kind in plan:
        round_.kill_at(started + moment, kind, rng)
    round_.finish([])
    return round_.check()[0]
