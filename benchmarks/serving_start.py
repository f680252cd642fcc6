"""Measures starts and memory of a prediction server with many tiny models: forked children, or interpreters.

Run `python -m benchmarks.serving_start [--models 13] [--rounds 3]`. Rounds alternate between a server that
forks its children and one that starts each as a new interpreter, so that load on the machine affects both.
Each server starts twice: first with an empty compile cache, then like a restart. The output is medians of

- the seconds from its start until every model answers, for both starts;
- the seconds until a model answers again whose child was killed, while the machine is otherwise idle;
- the private memory of a child (of `smaps_rollup`), and the proportional memory of the server with all its
  processes.
"""

import argparse
import contextlib
import functools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.serving_predict import Server, serving

MIB = 2**20
METRICS = "monitoring/prometheus/metrics"


class Measured(NamedTuple):
    first_start: float  # seconds until all models answer, with an empty compile cache
    restart: float  # the same, with the compile cache of the first start
    replacement: float  # seconds until a model answers again after its child was killed
    private: float  # MiB of private memory of a child, median
    largest: float  # MiB of private memory of the largest child
    total: float  # MiB of proportional memory of all processes of the server


def build_models(folder: Path, count: int) -> dict[str, Path]:
    """Write tiny models of different sizes, in another process, so that this one does not import Keras."""
    code = (
        "import keras, sys\n"
        "for number in range(int(sys.argv[2])):\n"
        "    x = keras.Input((4,), name='x')\n"
        "    h = keras.layers.Dense(8 + number, activation='relu')(x)\n"
        "    keras.Model(x, keras.layers.Dense(3)(h)).save(f'{sys.argv[1]}/m{number}.keras')\n"
    )
    command = [sys.executable, "-c", code, str(folder), str(count)]
    subprocess.run(command, check=True, env={**os.environ, "KERAS_BACKEND": "jax"})
    return {f"m{number}": folder / f"m{number}.keras" for number in range(count)}


def answers(server: Server, name: str) -> bool:
    """Return whether a model answers a prediction."""
    body = b'{"instances": [[1, 2, 3, 4]]}'
    with contextlib.suppress(urllib.error.URLError):
        urllib.request.urlopen(f"{server.url}/v1/models/{name}:predict", body, timeout=60).read()
        return True
    return False


def seconds_until(seen: Callable[[], bool], began: float) -> float:
    while not seen():
        time.sleep(0.02)
    return time.perf_counter() - began


def child_pids(server: Server) -> dict[str, int]:
    """Return the process of each model."""
    text = urllib.request.urlopen(f"{server.url}/{METRICS}").read().decode()
    processes = re.findall(r'child_pid\{model_name="([^"]+)"[^}]*\} (\S+)', text)
    return {name: int(float(pid)) for name, pid in processes}


def private_mib(pid: int) -> float:
    """Return the private memory of a process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def replacement(server: Server, name: str) -> float:
    """Kill the child of a model and return the seconds until the model answers again."""
    killed = child_pids(server)[name]
    began = time.perf_counter()
    psutil.Process(killed).kill()
    return seconds_until(
        lambda: child_pids(server).get(name, killed) != killed and answers(server, name), began
    )


def measure(folder: Path, models: Mapping[str, Path], variables: Mapping[str, str]) -> Measured:
    """Start a server twice."""
    starts = []
    for _ in range(2):
        began = time.perf_counter()
        with serving(folder, models, variables) as server:
            for name in models:
                seconds_until(functools.partial(answers, server, name), began)
            starts.append(time.perf_counter() - began)
            time.sleep(1)
            private = [private_mib(pid) for pid in child_pids(server).values()]
            processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            total = sum(process.memory_full_info().pss for process in processes) / MIB
            replaced = statistics.median(replacement(server, name) for name in list(models)[:3])
    return Measured(*starts, replaced, statistics.median(private), max(private), total)


def report(forked: Measured, executed: Measured) -> None:
    names = (
        "first start, all models answer, s",
        "restart, all models answer, s",
        "one killed child is replaced, s",
        "private memory of a child, MiB",
        "of the largest child, MiB",
        "memory of the whole server, MiB",
    )
    print(f"{'':36}{'forked':>10}{'executed':>10}{'ratio':>8}")
    for name, ours, theirs in zip(names, forked, executed, strict=True):
        print(f"{name:36}{ours:10.2f}{theirs:10.2f}{theirs / ours:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.serving_start", description=__doc__)
    parser.add_argument("--models", type=int, default=13)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sides: dict[str, list[Measured]] = {"1": [], "0": []}
    with tempfile.TemporaryDirectory() as name:
        models = build_models(Path(name), options.models)
        for number in range(options.rounds):
            for value, rounds in sides.items():
                folder = Path(name) / f"round-{number}-{value}"
                folder.mkdir()
                rounds.append(measure(folder, models, {"TRAINYARD_SERVING_FORK": value}))
    medians = [
        Measured(*(statistics.median(column) for column in zip(*rounds, strict=True)))
        for rounds in sides.values()
    ]
    print(f"{options.models} models, {options.rounds} rounds on {os.cpu_count()} cores")
    report(*medians)


if __name__ == "__main__":
    main()
