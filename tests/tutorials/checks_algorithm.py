"""Tests that `test_new_algorithm` runs in a copied tree with the tutorial's changes."""

import json
import subprocess
import sys
from typing import Any

from jobs.messages.suggest import SuggestRequest
from tests.experiments.conftest import SEARCH, SPEC
from tests.tutorials.checks_template import judged
from tests.world import World, world  # noqa: F401  a fixture

HALTON: dict[str, Any] = {**SEARCH, "algorithm": "halton", "options": {"skip": 7}}
IN_A_CHILD = """
import sys
from jobs.messages.suggest import SuggestRequest
from workers.engine.search.suggest import suggest
print(suggest(SuggestRequest.model_validate_json(sys.stdin.read())).model_dump_json())
"""


def test_the_form_offers_it(world: World) -> None:  # noqa: F811
    text = world.client(world.owner).get("/p/yard/experiments/new").content.decode()
    for label in (
        "Halton (even sequence)",
        "/search/options/skip",
        "Omits the first points, which lie on lines.",
    ):
        assert label in text


def test_rest_plans_it_and_refuses_invalid_arguments(world: World) -> None:  # noqa: F811
    verdict = judged(world, {**SPEC, "search": HALTON})
    assert (verdict["valid"], verdict["plan"]["trials"]) == (True, 4)
    wrong = judged(world, {**SPEC, "search": {**HALTON, "options": {"skip": -1}}})
    assert [error["pointer"] for error in wrong["errors"]] == ["/spec/search/options/skip"]
    rungs = judged(world, {**SPEC, "search": {**HALTON, "options": {"factor": 3}}})
    assert [error["pointer"] for error in rungs["errors"]] == ["/spec/search/options/factor"]


def test_the_engine_suggests_evenly_in_a_process_of_its_own() -> None:
    free = {"name": "learning_rate", "kind": "float", "min": 0.0, "max": 1.0}
    search = {**HALTON, "space": [free], "max_trials": 16, "options": {"skip": 0}}
    request = SuggestRequest.model_validate({"search": search, "count": 15})
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CHILD],
        input=request.model_dump_json(by_alias=True), capture_output=True, text=True, check=True,
    )  # fmt: skip
    values = [one["values"]["learning_rate"] for one in json.loads(done.stdout)["suggestions"]]
    assert values[:4] == [0.5, 0.25, 0.75, 0.125]
    assert sorted(values) == [i / 16 for i in range(1, 16)]
