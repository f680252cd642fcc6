"""SIGKILL for every kind of process, at seeded random times.

`TRAINYARD_CHAOS_KILLS` is the number of rounds; a round kills every kind once: one in `make test`, 25
in `make chaos`. `TRAINYARD_CHAOS_SEED` is the first round's seed, so that a failing round is replayed by
its own seed and one kill.
"""

import os

import pytest

from tests.chaos.harness import Round, Undisturbed
from tests.flow.yard import RunningYard

ROUNDS = int(os.environ.get("TRAINYARD_CHAOS_KILLS", "1"))
FIRST = int(os.environ.get("TRAINYARD_CHAOS_SEED", "1"))

pytestmark = pytest.mark.timeout(3600)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_after_kills_nothing_is_lost_duplicated_or_changed(
    seed: int, chaos_installation: RunningYard, undisturbed: Undisturbed
) -> None:
    round_ = Round(chaos_installation, seed)
    try:
        round_.run(undisturbed)
    except AssertionError as error:
        replay = f"TRAINYARD_CHAOS_SEED={seed} TRAINYARD_CHAOS_KILLS=1 make chaos"
        raise AssertionError("\n".join([f"seed {seed}: {replay}", *round_.history, str(error)])) from error
