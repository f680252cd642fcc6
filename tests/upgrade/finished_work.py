"""Runs work of every kind to its end before the home directory is saved."""

from typing import Any

from tests.flow.specs import Spec, search, spec, whole_line
from tests.flow.yard import PROJECT
from tests.ops.conftest import wait_for
from tests.upgrade.old_yard import FLOWER, RATE, OldYard

SHORT = {"epochs": 5, "batch_size": 16, "seed": 3}
UNITS = {"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8}


def upload_data(yard: OldYard) -> None:
    """Upload a table with numbers and words in two versions, and one that cannot be read."""
    lines = ["length,colour,label"]
    lines += [f"{i % 7 + 0.5},{('red', 'blue')[i % 2]},{('yes', 'no')[i * i % 3 % 2]}" for i in range(40)]
    yard.upload("petals", "petals.csv", "\n".join(lines).encode(), target="label", task="binary")
    yard.upload_unreadable("broken")


def run_whole_line(yard: OldYard) -> int:
    """Search, retrain, pool, quantize and register; then pool two chosen trials, and train one."""
    asked = search(max_trials=3, space=[UNITS, RATE], parallel_trials=2)
    job = yard.submit(spec(search=asked, fit=SHORT, after=whole_line("flowers")), name="whole line")
    yard.until_completed(job)
    yard.until_completed(int(yard.ada.post(f"/jobs/{job}/ensemble", {"trials": [1, 2]})["id"]))
    yard.until_completed(int(yard.ada.post(f"/jobs/{job}/trials/1/train")["id"]))
    address = f"/jobs/{job}/importance"
    wait_for(lambda: yard.ada.get(address)["state"] not in ("missing", "computing"), "the importance")
    return job


def release(yard: OldYard, job: int) -> None:
    """Release two versions, roll the second back, and withdraw a request for the third."""
    versions = {entry["what"]: entry["number"] for entry in yard.job(job)["results"]["versions"]}
    yard.change("PUT", "/models/flowers/aliases/small", {"version": versions["quantized"]})
    yard.promote("flowers", versions["best"])
    yard.promote("flowers", versions["ensemble"])
    yard.grace.post("/models/flowers/rollback", {"reason": "One model is easier to explain."})
    address, waiting = yard.gated("flowers", versions["quantized"])
    assert waiting["state"] == "pending", waiting
    yard.ada.post(f"{address}/withdraw", {"comment": "Not needed."})
    wait_for(lambda: yard.predict("flowers", [FLOWER])[0] == versions["best"], "the rollback")


def train_without_search(yard: OldYard) -> None:
    """Train on uploaded data up to a version; stop a training; keep a draft."""
    data: Spec = {"data": {"dataset": "petals", "split": {"validation": 0.2, "test": 0.2, "seed": 0}}}
    registered = {"register": {"model": "petals", "what": ["best"]}}
    yard.until_completed(yard.submit(spec(fit=SHORT, **data, after=registered), name="single"))
    job = yard.submit(spec(fit={**SHORT, "epochs": 100_000}), name="stopped")
    yard.until(job, lambda answer: answer["state"] == "running", "its start")
    yard.ada.post(f"/jobs/{job}/stop")
    yard.until_final(job)
    draft = {"project": PROJECT, "name": "draft", "spec": {"version": 1}, "draft": True, "tags": ["later"]}
    yard.ada.post("/experiments", draft)


def climb_rungs(yard: OldYard) -> None:
    """Search with rungs, each with a trial that a person queued."""
    for algorithm in ("hyperband", "asha"):
        job = submit(yard, algorithm, epochs=6, max_trials=6, options={"factor": 3, "min_epochs": 2})
        yard.ada.post(f"/jobs/{job}/trials", {"values": {"learning_rate": 0.005}})
        yard.until_completed(job)


def search_in_other_ways(yard: OldYard, earlier: int) -> None:
    """Search with a pruner, objectives, folds, duplicates, a warm start, and without success."""
    pruner = {"kind": "median", "startup_trials": 1}
    loss, accuracy = ({"metric": "val_loss"}, {"metric": "val_accuracy", "direction": "max"})
    jobs = [
        submit(yard, "random", name="pruned", epochs=8, max_trials=5, parallel_trials=1, pruner=pruner),
        submit(yard, "random", name="two objectives", objective=loss, objectives=[loss, accuracy]),
        submit(yard, "random", name="folds", max_trials=1, evaluation={"kind": "k_fold", "folds": 2}),
        submit(yard, "random", name="answered", max_trials=4, duplicates="answer", space=[UNITS]),
        submit(yard, "tpe", name="warm start", warm_start=earlier, space=[UNITS, RATE]),
    ]
    for job in jobs:
        yard.until_completed(job)
    hopeless = {"name": "learning_rate", "kind": "float", "min": 1e30, "max": 1e31, "sampling": "log"}
    job = submit(yard, "random", name="in vain", max_trials=8, max_consecutive_failures=1, space=[hopeless])
    assert yard.until_final(job)["state"] == "failed"


def revise_grid(yard: OldYard) -> None:
    """Search a grid that becomes smaller while it runs, and continue one trial."""
    units = {**UNITS, "max": 96}
    job = submit(yard, "grid", name="revised", epochs=10, max_trials=12, parallel_trials=1, space=[units])
    wait_for(lambda: yard.trials_in(job, "completed"), "the first point of the grid")
    change = {"search": {"space": [{**units, "max": 32}]}, "comment": "Large ones are no better."}
    yard.ada.post(f"/jobs/{job}/revise", change)
    yard.ada.post(f"/jobs/{job}/trials/1/continue", {"epochs": 50})
    yard.until_completed(job)


def leave_queued(yard: OldYard, job: int) -> None:
    """While no worker runs, upload a table and register a model: the jobs that check them wait."""
    yard.send_table("waiting", b"a,b,label\n" + b"1,2,yes\n3,4,no\n" * 20, target="label")
    model = next(a for a in yard.job(job)["results"]["artifacts"] if a["role"] == "model")
    yard.ada.post("/models", {"name": "waiting", "project": PROJECT})
    yard.ada.post("/models/waiting/versions", {"artifact": model["digest"]})


def submit(yard: OldYard, algorithm: str, *, name: str = "", epochs: int = 4, **parts: Any) -> int:
    """Submit a small search with single trainings."""
    asked = search(algorithm, **{"executions_per_trial": 1, "max_trials": 3, "space": [RATE], **parts})
    fit = {"epochs": epochs, "batch_size": 4, "seed": 3}
    return yard.submit(spec(search=asked, fit=fit), name=name or algorithm)


def finish_all(yard: OldYard) -> int:
    """Run all of it; return the search with every step."""
    upload_data(yard)
    job = run_whole_line(yard)
    release(yard, job)
    train_without_search(yard)
    climb_rungs(yard)
    search_in_other_ways(yard, job)
    revise_grid(yard)
    return job
