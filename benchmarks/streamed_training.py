"""Compares training on rows that are read from their file with training on rows in memory, in one run.

    python -m benchmarks.streamed_training [--rows 400000] [--columns 100] [--rounds 3] [--threads 2]
    python -m benchmarks.streamed_training --memory 8

A network of 3 × 512 units trains on float32 columns in batches of 1,024. The file is in the page cache. Both
sides use the same rows in the same order. In a round each trains one epoch, and each round begins with
another side. The ratio of the median times is printed, and the share of its time in which the streamed side
waits for rows. With `--memory`, a version of so many GiB is written and a small network trains on it for one
epoch in a process of its own, and on a version of 64 MiB in another one; the difference of their anonymous
memory is printed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

import numpy as np

from benchmarks.profiling import MIB, anonymous_memory
from jobs.messages.task import DatasetFile
from jobs.spec.data.profile import Column, Profile
from jobs.spec.experiment import ExperimentSpec

GIB = 2**30
CLASSES = 10
SMALL_BYTES = 64 * MIB
LARGE = {"units": 512, "layers": 3}
TINY = {"units": 16, "layers": 1}


def write_version(path: Path, rows: int, columns: int) -> DatasetFile:
    """Write a version of float32 columns and a target of ten classes, batch by batch."""
    import pyarrow as pa

    from workers.engine.data.reading.arrow_columns import field_of, to_arrow
    from workers.engine.data.reading.arrow_file import BATCH_ROWS, COLUMN

    rng = np.random.default_rng(0)
    names = [f"number_{number}" for number in range(columns)]
    noise = rng.normal(size=BATCH_ROWS + columns).astype(np.float32)
    fields = [field_of("y", np.zeros(1, np.int32))]
    fields += [field_of(COLUMN.format(place), noise[:1], name=name) for place, name in enumerate(names)]
    schema = pa.schema(fields)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for start in range(0, rows, BATCH_ROWS):
            length = min(BATCH_ROWS, rows - start)
            y = rng.integers(0, CLASSES, length).astype(np.int32)
            # The values of a column do not matter, but each has others.
            noisy_columns = [noise[place : place + length] + 0.1 * y for place in range(columns)]
            arrays = [to_arrow(array.astype(np.float32)) for array in noisy_columns]
            writer.write_batch(pa.RecordBatch.from_arrays([to_arrow(y), *arrays], schema=schema))
    profile = Profile(
        rows=rows, kind="vector", task="multiclass", target="y", features=tuple(names), has_pipeline=True,
        input_shape=(columns,), outputs=CLASSES, class_labels=tuple("0123456789"), preview=(),
        columns=(
            *(Column(name=name, role="feature", type="number", dtype="float32") for name in names),
            Column(name="y", role="target", type="integer", dtype="int32"),
        ),
    )  # fmt: skip
    return DatasetFile(path=str(path), digest="noise", profile=profile.model_dump(mode="json"))


def spec_with(args: dict[str, Any]) -> ExperimentSpec:
    """Return the experiment that both sides train."""
    return ExperimentSpec.model_validate(
        {
            "data": {"dataset": "noise"},
            "model": {"kind": "template", "template": "mlp", "args": args},
            "fit": {"batch_size": 1024, "epochs": 1, "learning_rate": 0.001},
        }
    )


def compare(rows: int, columns: int, rounds: int, folder: Path) -> None:
    """Time epochs of both sides in turn, and print the ratio."""
    from workers.engine.data.dataset import load_dataset
    from workers.engine.training.prepare import prepare
    from workers.engine.training.program_loop import ProgramLoop

    file, spec = write_version(folder / "version.arrow", rows, columns), spec_with(LARGE)
    loops: dict[str, ProgramLoop] = {}
    parts = None
    for side, limit in (("streamed", 0), ("in memory", None)):
        dataset = load_dataset(file, spec.data, in_memory_bytes=limit)
        training = prepare(spec, dataset, dataset.parts.train, name="timed", seed=0)
        parts = training.batches.parts if parts is None else parts
        training = replace(training, batches=replace(training.batches, parts=parts))
        loop = training.loop(epochs=10**6)
        assert isinstance(loop, ProgramLoop)
        # Timing the modes would be part of some epochs.
        loop.keep_step_mode("many")
        loop.epoch(1, 0, [], lambda _: None)
        loops[side] = loop
    seconds: dict[str, list[tuple[float, float]]] = {side: [] for side in loops}
    waits = []
    for number in range(rounds):
        for side in sorted(loops, reverse=number % 2 == 1):
            began, cpu = time.perf_counter(), time.process_time()
            loops[side].epoch(2 + number, 0, [], lambda _: None)
            seconds[side].append((time.perf_counter() - began, time.process_time() - cpu))
        waits.append(loops["streamed"].data_wait or 0.0)
    _report(seconds, statistics.median(waits))


def _report(seconds_by_side: dict[str, list[tuple[float, float]]], wait: float) -> None:
    medians = {
        side: [statistics.median(times) for times in zip(*runs, strict=True)]
        for side, runs in seconds_by_side.items()
    }
    for side, (seconds, cpu) in medians.items():
        print(f"{side:10} {seconds:7.2f} s per epoch, {cpu:7.2f} s of CPU")
    time_ratio, cpu_ratio = (a / b for a, b in zip(medians["streamed"], medians["in memory"], strict=True))
    print(f"streamed training waits for rows {100 * wait:.2f} % of the time")
    print(f"it takes {time_ratio:.3f} times as long as training in memory; by CPU time {cpu_ratio:.3f} times")


def measure(path: Path, rows: int, columns: int) -> float:
    """Train one epoch on a streamed version, validate, and return the peak of anonymous memory in MiB."""
    from workers.engine.data.dataset import load_dataset
    from workers.engine.training.prepare import prepare

    spec = spec_with(TINY)
    profile = json.loads((path.parent / "profile.json").read_text())
    file = DatasetFile(path=str(path), digest="noise", profile=profile | {"rows": rows})
    with anonymous_memory() as memory:
        dataset = load_dataset(file, spec.data, in_memory_bytes=0)
        training = prepare(spec, dataset, dataset.parts.train, name="measured", seed=0)
        loop = training.loop(epochs=1)
        loop.epoch(1, 0, [], lambda _: None)
        rows_to_predict = training.evaluation_set(dataset.parts.validation)
        loop.predict(rows_to_predict.x, rows_to_predict.batch_size)
    print(f"{columns} columns, {rows:,} rows: {100 * (loop.data_wait or 0):.1f} % waiting", file=sys.stderr)
    return memory[0]


def compare_memory(gib: float, columns: int, folder: Path) -> None:
    """Print the anonymous memory of a training on a large version beside that on a small one."""
    peaks = []
    for size in (SMALL_BYTES, int(gib * GIB)):
        path, rows = folder / "version.arrow", size // (4 * columns)
        file = write_version(path, rows, columns)
        (folder / "profile.json").write_text(json.dumps(file.profile))
        began = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks.streamed_training", "--file", str(path)]
        command += ["--rows", str(rows), "--columns", str(columns)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        peaks.append(float(done.stdout.splitlines()[-1]))
        seconds = time.perf_counter() - began
        print(
            f"{path.stat().st_size / GIB:6.2f} GiB: {peaks[-1]:7.0f} MiB of anonymous memory, {seconds:.0f} s"
        )
        path.unlink()
    print(f"the large version takes {peaks[1] - peaks[0]:.0f} MiB more than the small one")


def main() -> None:
    """Run the comparison, or measure the memory."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.streamed_training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--memory", type=float, metavar="GIB")
    parser.add_argument("--folder", type=Path, help="for the versions; of the system by default")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["NPROC"] = str(options.threads)
    if options.file is not None:
        print(measure(options.file, options.rows, options.columns))
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    run: Callable[[Path], None] = (
        (lambda folder: compare_memory(options.memory, options.columns, folder))
        if options.memory is not None
        else (lambda folder: compare(options.rows, options.columns, options.rounds, folder))
    )
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run(Path(folder))
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
