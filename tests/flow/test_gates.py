"""A model for a rare class, trained for its AUC under class weights, on its way through the gates."""

from typing import Any

import pytest

from tests.flow.specs import search, spec
from tests.flow.yard import RunningYard

pytestmark = pytest.mark.timeout(1800)

MODEL = "rare"


def rare_rows() -> bytes:
    """Return 900 rows as CSV: 9 % positives, eight numbers, and two sites of different sizes."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 8))
    y = x[:, 0] + 0.7 * x[:, 1] + 0.8 * rng.normal(size=900) > 1.9
    site = np.where(rng.random(900) < 0.7, "north", "south")
    lines = ["site," + ",".join(f"f{i}" for i in range(8)) + ",ill"]
    lines += [
        ",".join([place, *(f"{value:.4f}" for value in row), "yes" if ill else "no"])
        for place, row, ill in zip(site, x, y, strict=True)
    ]
    return "\n".join(lines).encode()


def rare_spec() -> dict[str, Any]:
    space = [{"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8}]
    grid_search = search("grid", metric="val_auc", executions_per_trial=2, space=space)
    grid_search["objective"] = {"metric": "val_auc", "direction": "max"}
    fit = {
        "epochs": 40, "batch_size": 64, "learning_rate": 0.003, "seed": 3,
        "class_weights": {"no": 1, "yes": 40}, "early_stopping": {"patience": 6},
    }  # fmt: skip
    after = {
        "retrain": {"top": 1, "patience": 6, "epochs_cap": 60},
        "register": {"model": MODEL, "what": ["best"]},
    }
    return spec("rare", search=grid_search, fit=fit, after=after)


RULES = {
    "floors": [{"metric": "roc_auc", "limit": 0.6}],
    "slices": [
        {"column": "site", "value": "north", "limit": 0.55},
        {"column": "site", "value": "south", "min_rows": 170},
    ],
    "latency_p95_ms": 10_000,
}


def set_rules(installation: RunningYard, rules: dict[str, Any]) -> int:
    return int(
        installation.grace.put(f"/models/{MODEL}/gates", {"rules": rules, "comment": "A test."})["revision"]
    )


def test_a_model_trained_for_its_auc_under_class_weights_reaches_production(
    flow_installation: RunningYard,
) -> None:
    installation = flow_installation
    installation.upload("rare", "rare.csv", rare_rows(), target="ill", task="binary")
    job = installation.until_completed(installation.submit(rare_spec()))
    trained = installation.job(next(step["job"] for step in job["steps"] if step["kind"] == "train"))
    assert trained["results"]["choice"]["metric"] == "val_auc"

    # By accuracy and log loss it is no better than a constant. The failed gate names the next step.
    accuracy = set_rules(installation, {"metric": "accuracy"})
    address, judged = installation.gated(MODEL, 1)
    gates = {gate["name"]: gate for gate in judged["gates"]}
    assert (judged["state"], judged["gates_revision"]) == ("failed", accuracy)
    baseline = gates["better_than_baseline"]
    assert (baseline["state"], baseline["metric"]) == ("failed", "accuracy")
    assert [one["metric"] for one in baseline["alternatives"]] == ["accuracy", "log_loss"]
    assert not any(one["passed"] for one in baseline["alternatives"])
    assert "ask an approver" in baseline["next_step"]
    assert installation.grace.refused(f"{address}/approve", {"comment": "Anyway."}) == 409

    # An approver follows it: the metric is the objective again, with a floor, slices and a ceiling.
    revision = set_rules(installation, RULES)
    address, judged = installation.gated(MODEL, 1)
    gates = {gate["name"]: gate for gate in judged["gates"]}
    assert (judged["state"], judged["gates_revision"]) == ("pending", revision), judged["gates"]
    assert gates["better_than_baseline"]["metric"] == gates["metric"]["metric"] == "roc_auc"
    assert gates["better_than_baseline"]["limit"] == 0.5
    assert gates["floor:roc_auc"]["low"] < gates["floor:roc_auc"]["value"] < gates["floor:roc_auc"]["high"]
    assert gates["slice:site=north"]["state"] == "passed"
    assert gates["slice:site=south"]["state"] == "not_evaluated"
    assert gates["latency"]["limit"] == 10_000

    accept = [name for name, gate in gates.items() if gate["state"] == "not_evaluated"]
    assert accept == ["slice:site=south"]
    assert installation.grace.refused(f"{address}/approve", {"comment": "Fine."}) == 409
    approved = installation.grace.post(f"{address}/approve", {"comment": "Fine.", "accept": accept})
    assert approved["state"] == "approved"
    assert installation.ada.get(f"/endpoints/{MODEL}")["production"] == 1
