"""Compares profiling a large CSV file with `pandas.read_csv` and `describe` of the same file, in one run.

Run `python -m benchmarks.profiling [--bytes 1000000000] [--columns 50] [--rounds 3] [--threads 2]`. The file
has columns of numbers with gaps, whole numbers, and words, and a target of two classes. Each round starts a
new process for each side, in alternating order, with the file in the page cache. Seconds and CPU seconds are
printed with the anonymous memory beyond that after the imports, and the ratio of the medians. The sides:

- `pandas`: `read_csv` and `describe`, on one core.
- `columns`: the part of the profile that does the same, with the types and roles of the columns, their
  histograms and their numbers of different values.
- `profile`: the whole task, which also has duplicate rows, leakage, the overview with repeated rows and
  correlations, the normalized file, and its digest.
- `arrow`: pyarrow reads the file on all cores, and does nothing else.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jobs.spec.data.file_limits import FileLimits

WORDS = ("north", "south", "east", "west", "centre")
PART_ROWS = 20_000
MIB = 2**20
LIMITS = FileLimits(expanded_bytes=2**40)
SIDES = ("pandas", "arrow", "columns", "profile")


class Measured(NamedTuple):
    """One run of a side."""

    seconds: float
    cpu_seconds: float
    anonymous_mib: float


def write_table(path: Path, size: int, columns: int, seed: int = 0) -> int:
    """Write a CSV file of at least `size` bytes; return the number of rows."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    rows, header = 0, True
    with path.open("w") as file:
        while file.tell() < size:
            part: dict[str, Any] = {}
            for number in range(columns - 1):
                if number % 10 == 8:
                    part[f"word_{number}"] = rng.choice(WORDS, PART_ROWS)
                elif number % 10 == 9:
                    part[f"count_{number}"] = rng.integers(0, 100_000, PART_ROWS)
                else:
                    values = rng.normal(scale=10.0 ** (number % 5), size=PART_ROWS)
                    values[rng.random(PART_ROWS) < 0.01 * (number % 3)] = np.nan
                    part[f"number_{number}"] = values
            part["target"] = rng.integers(0, 2, PART_ROWS)
            pd.DataFrame(part).to_csv(file, index=False, header=header, float_format="%.9g")
            rows, header = rows + PART_ROWS, False
    return rows


@contextmanager
def anonymous_memory() -> Iterator[list[float]]:
    """Measure the largest anonymous memory of this process in the block, beyond that before it, in MiB."""
    peak, ended = [0.0], threading.Event()
    before = _anonymous()

    def watch() -> None:
        while not ended.wait(0.02):
            peak[0] = max(peak[0], (_anonymous() - before) / MIB)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def _anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def run_pandas(path: Path) -> Measured:
    """Read and describe the file with pandas."""
    import pandas as pd

    with anonymous_memory() as memory:
        start, cpu = time.perf_counter(), time.process_time()
        pd.read_csv(path).describe()
        spent = time.perf_counter() - start, time.process_time() - cpu
    return Measured(*spent, memory[0])


def run_arrow(path: Path) -> Measured:
    """Read the file with pyarrow on all cores."""
    from pyarrow import csv

    with anonymous_memory() as memory:
        start, cpu = time.perf_counter(), time.process_time()
        csv.read_csv(path)
        spent = time.perf_counter() - start, time.process_time() - cpu
    return Measured(*spent, memory[0])


def run_columns(path: Path, threads: int) -> Measured:
    """Read the file in parts, and describe its columns."""
    # Imported before, as runners do.
    import pandas as pd  # noqa: F401
    import pyarrow.compute
    import pyarrow.csv  # noqa: F401

    from workers.engine.data.reading.csv_file import read_csv
    from workers.engine.data.schema import propose
    from workers.engine.data.spilled import Spill
    from workers.engine.data.tabular import describe

    with (
        tempfile.TemporaryDirectory(dir=path.parent) as folder,
        ThreadPoolExecutor(threads) as pool,
        anonymous_memory() as memory,
    ):
        start, cpu = time.perf_counter(), time.process_time()
        table = read_csv(path, LIMITS, spill=Spill(Path(folder), threads))
        schema = propose(table, target="target", features=None)
        columns = schema.table.columns
        list(pool.map(lambda name: describe(name, columns, schema.columns[name]), schema.columns))
        spent = time.perf_counter() - start, time.process_time() - cpu
    return Measured(*spent, memory[0])


def run_profile(path: Path, threads: int) -> Measured:
    """Run the profile task on the file."""
    # Imported before, as runners do.
    import pandas as pd  # noqa: F401
    import pyarrow.compute
    import pyarrow.csv  # noqa: F401

    from tests.engine.helpers import profiled

    with tempfile.TemporaryDirectory(dir=path.parent) as folder, anonymous_memory() as memory:
        start, cpu = time.perf_counter(), time.process_time()
        profiled(Path(folder), source="csv", path=str(path), target="target", threads=threads, limits=LIMITS)
        spent = time.perf_counter() - start, time.process_time() - cpu
    return Measured(*spent, memory[0])


def _child(side: str, path: Path, threads: int) -> Measured:
    command = [sys.executable, "-m", "benchmarks.profiling", "--side", side, "--file", str(path)]
    done = subprocess.run([*command, "--threads", str(threads)], capture_output=True, text=True, check=True)
    return Measured(*json.loads(done.stdout.splitlines()[-1]))


def _print(side: str, runs: list[Measured]) -> Measured:
    median = Measured(*(statistics.median(values) for values in zip(*runs, strict=True)))
    print(
        f"{side:8} {median.seconds:7.2f} s  {median.cpu_seconds:7.2f} s of CPU  "
        f"{median.anonymous_mib:8.0f} MiB of anonymous memory"
    )
    return median


def main() -> None:
    """Write the file, run all sides in turn, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=10**9)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=min(len(os.sched_getaffinity(0)), 8))
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    if options.side is not None:
        parallel = {"columns": run_columns, "profile": run_profile}.get(options.side)
        alone = run_pandas if options.side == "pandas" else run_arrow
        print(json.dumps(parallel(options.file, options.threads) if parallel else alone(options.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "table.csv"
        if options.file is None:
            rows = write_table(path, options.bytes, options.columns)
            print(f"{rows:,} rows, {options.columns} columns, {path.stat().st_size:,} bytes")
        runs: dict[str, list[Measured]] = {side: [] for side in SIDES}
        for number in range(options.rounds):
            for side in sorted(runs, reverse=number % 2 == 1):
                runs[side].append(_child(side, path, options.threads))
        summaries = {side: _print(side, measured) for side, measured in runs.items()}
    pandas = summaries["pandas"]
    for side in ("columns", "profile"):
        print(
            f"{side}: {pandas.seconds / summaries[side].seconds:.2f} times as fast as pandas; by CPU time "
            f"{pandas.cpu_seconds / summaries[side].cpu_seconds:.2f} times"
        )


if __name__ == "__main__":
    main()
