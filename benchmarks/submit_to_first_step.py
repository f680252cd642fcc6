"""Measures the time from submitting a job to its first training step: plain Python, ours cold, ours warm.

Run `python -m benchmarks.submit_to_first_step [--rounds 10]`. Two complete installations run side by side:
one without standbys and with an empty compile cache before each job, one with a standby and the programs of
an earlier job of its project. A round is one job on each and one `python script.py` that imports Keras and
fits the same network on the same rows. All train one epoch of one step, and the time ends with the metrics of
that step. The output is medians, ratios of pairs, and the time of each stage.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.flow import rows
from tests.flow.yard import RunningYard, open_yard
from workers.engine.data.store import read_arrays

SPEC = {
    "version": 1,
    "data": {"dataset": "iris", "split": {"validation": 0.2, "test": 0.2, "seed": 0}},
    "model": {"kind": "template", "template": "mlp", "args": {"units": 32, "layers": 2}},
    "fit": {"epochs": 1, "batch_size": 90},
}
PLAIN = """
import os, sys, time
os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
data = np.load(sys.argv[1])
x, y = data["x"][:90], data["y"][:90]
inputs = keras.Input(x.shape[1:])
normalize = keras.layers.Normalization()
normalize.adapt(x)
hidden = normalize(inputs)
for _ in range(2):
    hidden = keras.layers.Dense(32, activation="relu")(hidden)
model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(hidden))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=90, epochs=1, verbose=0)
print(time.time())
"""
HOPS = ("posted", "queued", "assigned", "claimed", "started", "stepped")


class Hops(NamedTuple):
    """Seconds since the request was sent, for each stage."""

    posted: float
    queued: float
    assigned: float
    claimed: float
    started: float
    stepped: float


def plain(script: Path, data: Path) -> float:
    """Return the seconds from starting an interpreter to its first training step."""
    began = time.time()
    done = subprocess.run([sys.executable, script, data], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1]) - began


def measure(yard: RunningYard, experiment: int) -> Hops:
    """Submit a job and return the time of each stage."""
    began = time.time()
    job = int(yard.ada.post(f"/experiments/{experiment}/submit")["job"])
    posted = time.time()
    yard.until_completed(job)
    times = yard.call("benchmarks.submit_to_first_step", "row_times", job)
    events = yard.events_of(job)
    started = next(event["time"] for event in events if event["type"] == "attempt")
    stepped = next(
        event["points"][0][3] for event in events if event["type"] == "metric" and event["x"] == "epoch"
    )
    return Hops(*(moment - began for moment in (posted, *times, started, stepped)))


def row_times(job: int) -> list[float]:
    """Return when a job was queued, placed and claimed. Runs inside the installation."""
    from jobs.models import Attempt

    attempt = Attempt.objects.select_related("job").filter(job=job).earliest("pk")
    moments = (attempt.job.queued, attempt.assigned, attempt.claimed)
    return [moment.timestamp() for moment in moments if moment is not None]


def write_rows(version: Path, path: Path) -> None:
    """Write the rows of a dataset version to a file that the plain script can read."""
    arrays = read_arrays(version)
    features = [f"column_{i}" for i, name in enumerate(arrays["columns"]) if name != "species"]
    x = np.column_stack([arrays[name] for name in features]).astype(np.float32)
    np.savez(path, x=x, y=arrays["y"])


def data_file() -> str:
    """Return the path of the data file. Runs inside the installation."""
    from jobs.models import DatasetVersion
    from jobs.store import store

    version = DatasetVersion.objects.get(dataset__slug="iris", number=1)
    assert version.table is not None
    return str(store().path(version.table.digest))


def empty_compile_cache(home: Path) -> None:
    """Delete the compiled programs of an installation; its runners keep using their folders."""
    for file in (home / "compile-cache").glob("*/*"):
        file.unlink(missing_ok=True)


def standby_is_ready(yard: RunningYard) -> None:
    """Wait until a heartbeat reports a standby that is not in use."""

    def waiting() -> list[int]:
        standbys: list[int] = yard.call("benchmarks.submit_to_first_step", "standbys")
        return [pid for pid in standbys if _name(pid) == "ty-standby"]

    query = "SELECT info FROM jobs_worker WHERE state = 'up'"
    rows.until(yard.home, query, [], waiting, what="a standby", seconds=120)


def standbys() -> list[int]:
    """Return the ids of standby processes. Runs inside the installation."""
    from jobs.models import Worker

    warm = [row for worker in Worker.objects.filter(state="up") for row in worker.info.get("warm", [])]
    return [row["pid"] for row in warm if row["kind"] == "standby" and row["state"] == "ready"]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@contextmanager
def yard_with(home: Path, **environment: str) -> Iterator[tuple[RunningYard, int]]:
    """Start an installation with an experiment."""
    with open_yard(home, **environment) as yard:
        yard.open()
        body = {"project": "flow", "name": "first step", "spec": SPEC}
        yield yard, int(yard.ada.post("/experiments", body)["id"])


def compare(rounds: int, folder: Path) -> tuple[list[float], list[Hops], list[Hops]]:
    """Return the times of each of the three."""
    script = folder / "script.py"
    script.write_text(PLAIN)
    plainly: list[float] = []
    colds: list[Hops] = []
    warms: list[Hops] = []
    with (
        yard_with(folder / "cold", TRAINYARD_STANDBY="0") as (cold, cold_experiment),
        yard_with(folder / "warm", TRAINYARD_NODE_STANDBY_PATIENCE="1") as (warm, warm_experiment),
    ):
        data = folder / "rows.npz"
        write_rows(Path(cold.call("benchmarks.submit_to_first_step", "data_file")), data)
        measure(cold, cold_experiment)  # starts the fork server
        measure(warm, warm_experiment)  # fills the compile cache
        for _ in range(rounds):
            plainly.append(plain(script, data))
            empty_compile_cache(folder / "cold")
            colds.append(measure(cold, cold_experiment))
            standby_is_ready(warm)
            warms.append(measure(warm, warm_experiment))
    return plainly, colds, warms


def report(plainly: list[float], colds: list[Hops], warms: list[Hops]) -> None:
    """Print medians, ratios and stages."""
    cold, warm = [hops.stepped for hops in colds], [hops.stepped for hops in warms]
    print(f"{'to the first step':24}{'median, s':>10}{'worst, s':>10}{'plain / this':>14}")
    for name, ours in (("python script.py", plainly), ("ours, cold", cold), ("ours, standby + cache", warm)):
        ratio = statistics.median(a / b for a, b in zip(plainly, ours, strict=True))
        print(f"{name:24}{statistics.median(ours):10.2f}{max(ours):10.2f}{ratio:14.2f}")
    print("\nmedian milliseconds since the request: " + ", ".join(HOPS))
    for name, all_hops in (("cold", colds), ("standby", warms)):
        milliseconds = [statistics.median(column) * 1000 for column in zip(*all_hops, strict=True)]
        print(f"{name:10}" + "".join(f"{value:10.0f}" for value in milliseconds))


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.submit_to_first_step", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        hops = compare(rounds, Path(folder))
    print(f"{rounds} rounds on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    report(*hops)


if __name__ == "__main__":
    main()
