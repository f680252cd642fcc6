"""Running jobs: pause, stop, retry, kill, pruning, meshes and memory caps."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.flow import rows
from tests.flow.conftest import EPOCHS, EXECUTIONS, TRIALS, Watched
from tests.flow.specs import search, spec
from tests.flow.yard import RunningYard

pytestmark = pytest.mark.timeout(1800)

LONG = {"epochs": 3000, "batch_size": 16, "seed": 1}


def is_running(job: dict[str, Any]) -> bool:
    return job["state"] == "running"


def points_in_events(events: list[dict[str, Any]], name: str) -> Counter[tuple[int, int, float]]:
    """Count the points of a metric by (trial, execution, epoch)."""
    return Counter(
        (event["trial"], event["execution"], point[1])
        for event in events
        if event["type"] == "metric"
        for point in event["points"]
        if point[0] == name
    )


def test_events_logs_and_metrics_contain_every_epoch_once(
    flow_installation: RunningYard, watched: Watched
) -> None:
    events = flow_installation.events_of(watched.job)
    assert [event["cursor"] for event in events] == list(range(1, len(events) + 1))
    curves = {(trial + 1, run + 1) for trial in range(TRIALS) for run in range(EXECUTIONS)}
    epochs = list(range(1, EPOCHS + 1))
    expected = {(*curve, epoch) for curve in curves for epoch in epochs}
    assert points_in_events(events, "val_loss") == Counter(dict.fromkeys(expected, 1))
    series = flow_installation.ada.get(f"/jobs/{watched.job}/metrics", names="val_loss")["series"]
    assert {(curve["trial"], curve["execution"]) for curve in series} == curves
    assert all([point[0] for point in curve["points"]] == epochs for curve in series)
    lines = flow_installation.ada.get(f"/jobs/{watched.job}/logs", limit=5000)["items"]
    assert len({line["cursor"] for line in lines}) == len(lines)


def test_a_search_goes_through_pause_resume_stop_and_retry_without_losing_a_point(
    flow_installation: RunningYard,
) -> None:
    job_id = flow_installation.submit(spec(search=search(executions_per_trial=1, max_trials=1), fit=LONG))

    def tell(order: str, state: str) -> None:
        flow_installation.ada.post(f"/jobs/{job_id}/{order}")
        flow_installation.until(job_id, lambda job: job["state"] == state, f"{state} after {order}")

    flow_installation.until(job_id, is_running, "training")
    tell("pause", "paused")
    tell("resume", "running")
    tell("stop", "stopped")
    tell("retry", "completed")
    attempts = flow_installation.ada.get(f"/jobs/{job_id}/attempts", sort="id")["items"]
    assert [attempt["outcome"] for attempt in attempts] == ["paused", "stopped", "completed"]
    points = points_in_events(flow_installation.events_of(job_id), "val_loss")
    assert points == Counter({(1, 1, epoch): 1 for epoch in range(1, LONG["epochs"] + 1)})


def test_a_training_is_pruned_by_a_trial_that_ends_in_the_other_slot(flow_installation: RunningYard) -> None:
    rates = [{"name": "learning_rate", "kind": "choice", "values": [0.1, 1e-7]}]  # one ends early, one never
    asked = search(
        "grid", space=rates, executions_per_trial=1, pruner={"kind": "median", "startup_trials": 1}
    )
    early = {"monitor": "val_loss", "patience": 30}
    fit = {"epochs": 50_000, "batch_size": 16, "early_stopping": early}
    job_id = flow_installation.submit(spec(search=asked, fit=fit))
    flow_installation.until_completed(job_id)
    good, hopeless = flow_installation.ada.get(f"/jobs/{job_id}/trials", sort="number")["items"]
    assert (good["state"], hopeless["state"]) == ("completed", "pruned")
    assert hopeless["started"] < good["finished"], "they did not run at the same time"
    query = """SELECT value, epoch, saw FROM jobs_trialdecision JOIN jobs_trial trial ON trial.id = trial_id
        WHERE job_id = ? AND number = ?"""
    ((value, epoch, saw),) = rows.read(flow_installation.home, query, job_id, hopeless["number"])
    seen = json.loads(saw)
    assert (value, seen["of"]) == (hopeless["score"], 1)
    # Both are compared at the same epoch: the other trial may have improved after it, if it was ahead.
    losses = [
        point[2]
        for event in flow_installation.events_of(job_id)
        if event["type"] == "metric" and event["trial"] == good["number"]
        for point in event["points"]
        if point[0] == "val_loss" and point[1] <= epoch
    ]
    assert value > seen["cutoff"] == pytest.approx(min(losses))
    assert seen["cutoff"] >= good["score"]


def test_a_killed_job_stops_at_once(flow_installation: RunningYard) -> None:
    job_id = flow_installation.submit(spec(fit={**LONG, "epochs": 50_000}))
    flow_installation.until(job_id, is_running, "training")
    flow_installation.ada.post(f"/jobs/{job_id}/kill")
    flow_installation.until_final(job_id, seconds=60)
    last = [event for event in flow_installation.events_of(job_id) if event["type"] == "state"][-1]
    assert (last["state"], last["reason"]) == ("stopped", "killed")


MODEL_PARALLEL = {
    "devices": "cpu",
    "shape": [2, 2],
    "axis_names": ["data", "model"],
    "simulate": 4,
    "layout": [
        {"match": "dense_1/kernel", "axes": [None, "model"]},
        {"match": "dense_1/bias", "axes": ["model"]},
    ],
}


def test_a_trial_runs_over_simulated_devices(flow_installation: RunningYard) -> None:
    one_trial = search(max_trials=1, executions_per_trial=1)
    job_id = flow_installation.submit(
        spec(mesh=MODEL_PARALLEL, search=one_trial, fit={"epochs": 3, "batch_size": 16})
    )
    flow_installation.until_completed(job_id)
    (attempt,) = flow_installation.ada.get(f"/jobs/{job_id}/attempts")["items"]
    assert str(attempt["record"]).count("cpu") >= 1
    shardings = flow_installation.ada.get(f"/jobs/{job_id}/shardings")
    assert (shardings["trial"], shardings["differences"], len(shardings["devices"])) == (1, 0, 4)
    assert any(variable["shard_shape"] != variable["shape"] for variable in shardings["variables"])
    assert shardings["steps_per_second"] > 0


def test_a_run_above_its_memory_cap_is_ended_and_the_cap_is_named(flow_installation: RunningYard) -> None:
    job_id = flow_installation.submit(spec(fit=LONG, resources={"memory_gib": 0.1}))
    job = flow_installation.until_final(job_id)
    assert (job["state"], job["error"]["code"]) == ("failed", "out_of_memory")
    assert "above its cap of 0.10 GiB" in job["error"]["message"]
