"""Tests that `test_new_template` runs in a copied tree with the tutorial's changes."""

from typing import Any

import numpy as np

from jobs.models import Project
from tests.world import World, world  # noqa: F401  a fixture

SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": "digits"},
    "model": {"kind": "template", "template": "residual", "args": {"units": 16, "additions": 2}},
    "fit": {"epochs": 2, "early_stopping": {"patience": 1}},
}


def judged(world: World, spec: dict[str, Any]) -> dict[str, Any]:  # noqa: F811
    client = world.client(world.owner)
    body = {"project": "yard", "spec": spec}
    answer = client.post("/api/v1/experiments/validate", body, content_type="application/json")
    verdict: dict[str, Any] = answer.json()
    return verdict


def test_the_form_offers_it(world: World) -> None:  # noqa: F811
    assert Project.objects.filter(slug="yard").exists()
    page = world.client(world.owner).get("/p/yard/experiments/new?template=residual")
    text = page.content.decode()
    for label in (
        "Dense residual network",
        "/model/args/additions",
        "Each adds to its input.",
        '"template": "residual"',
    ):
        assert label.replace('"', "&quot;") in text, label


def test_rest_plans_it_and_refuses_invalid_arguments(world: World) -> None:  # noqa: F811
    verdict = judged(world, SPEC)
    assert (verdict["valid"], verdict["errors"]) == (True, [])
    assert verdict["plan"]["parameters"] == (64 * 16 + 16) + 2 * (2 * 16 + 16 * 16 + 16) + (16 * 10 + 10)
    space = [{"name": "additions", "kind": "int", "min": 1, "max": 4}]
    searched = judged(world, {**SPEC, "search": {"objective": {"metric": "val_loss"}, "space": space}})
    assert searched["plan"]["largest"] == {"additions": 4}
    wrong = judged(world, {**SPEC, "model": {**SPEC["model"], "args": {"additions": 0}}})
    assert [error["pointer"] for error in wrong["errors"]] == ["/spec/model/args/additions"]


def test_the_engine_trains_it(tmp_path: Any) -> None:
    from jobs.spec.experiment import ExperimentSpec
    from jobs.spec.sections.data import DataSpec
    from tests.engine.compiled.test_program import train
    from tests.engine.helpers import profiled
    from workers.engine.data.dataset import load_dataset
    from workers.engine.training.prepare import prepare

    spec = ExperimentSpec.model_validate(SPEC)
    data = load_dataset(profiled(tmp_path / "data", bundled="digits"), DataSpec(dataset="digits"))
    prepared = prepare(spec, data, data.parts.train, name="t", seed=0)
    before = np.array(prepared.model.get_layer("dense_2").kernel)
    figures, _ = train(prepared, tmp_path / "run", prepared.loop(epochs=3))
    assert figures["val_accuracy"] > 0.3
    assert not np.array_equal(before, prepared.model.get_layer("dense_2").kernel)
