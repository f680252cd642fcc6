"""Reads mutants in child processes, and keeps those that end badly."""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.reading import SECONDS, Mutant

BATCH = 1_000
SILENCE = 2 * SECONDS
"""Seconds without a line after which the child is ended: its own alarm does not reach a library's loop."""
ROOT = Path(__file__).parents[2]


@dataclass
class Outcome:
    """How a run's mutants ended.

    Attributes:
        faults: what went wrong, with the file that was kept and the command that repeats it.
        ends: number of mutants by the first word of their end.
        peak: most memory of a child.
        slowest: most seconds of a mutant.
    """

    seed: int
    faults: list[str] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)
    peak: int = 0
    slowest: float = 0.0

    @property
    def mutants(self) -> int:
        """Return the number of mutants that were read."""
        return sum(self.ends.values())


def run(seed: int, count: int, folder: Path, *, processes: int = 1, load: bool = False) -> Outcome:
    """Read a seed's first `count` mutants.

    Args:
    seed: determines the mutants.
        count: their number.
    folder: is filled with the runs' folders.
        processes: how many children run at once.
        load: whether the models among them are also loaded by Keras, whose import takes seconds.
    """
    outcome = Outcome(seed)
    batches = [
        _Batch(outcome, at, min(at + BATCH, count), folder / f"batch-{at}") for at in range(0, count, BATCH)
    ]
    if load:
        batches.append(_Batch(outcome, 0, count, folder / "models", load=True))
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(_Batch.run, batches))
    return outcome


@dataclass
class _Batch:
    """The mutants from `first` to `end`, which one child reads; if it dies, another continues."""

    outcome: Outcome
    first: int
    end: int
    folder: Path
    load: bool = False

    def run(self) -> None:
        """Read them."""
        self.folder.mkdir(parents=True)
        at = self.first
        while at < self.end:
            at = self._read_from(at)
            if beside := sorted(path.name for path in self.folder.iterdir() if path.name != "run"):
                self.outcome.faults.append(f"mutants of {self.folder.name} wrote {beside}")

    def _read_from(self, first: int) -> int:
        """Read from a mutant on; return the number of the one to continue with."""
        begun: int | None = None
        for line in _lines(self._command(first)):
            if "done" in line:
                return self.end
            if "begin" in line:
                begun = line["begin"]
            elif "died" in line:
                fault = f"the reader died {line['died']}"
                if begun is None:
                    self.outcome.faults.append(f"{fault} outside of a mutant, after {first}")
                    return self.end
                _record(self.outcome, {"number": begun, "fault": fault})
                return begun + 1
            else:
                first, begun = line["number"], None
                _record(self.outcome, line)
        return self.end

    def _command(self, first: int) -> list[str]:
        return [
            sys.executable, "-m", "tests.mutants.reading", "--seed", str(self.outcome.seed),
            "--first", str(first), "--count", str(self.end - first), "--folder", str(self.folder),
            *(["--load"] if self.load else []),
        ]  # fmt: skip


def _lines(command: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a child's lines, and at last how it ended."""
    # Arrow's own allocator reserves address space, which the limit counts.
    environment = {
        **os.environ,
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "OMP_NUM_THREADS": "1",
        "KERAS_BACKEND": "jax",
    }
    rest = b""
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, env=environment) as child,
    ):
        assert child.stdout is not None
        while True:
            ready, _, _ = select.select([child.stdout], [], [], SILENCE)
            if not ready:
                child.kill()
            if not (chunk := os.read(child.stdout.fileno(), 1 << 16)):
                break
            *whole, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, whole)
        code = child.wait()
        errors.seek(0)
        yield {"died": f"with {code}: {errors.read()[-2000:].decode(errors='replace')}"}


def _record(outcome: Outcome, line: dict[str, Any]) -> None:
    end = "fault" if line["fault"] else "refused" if line["end"].startswith("refused") else "read"
    outcome.ends[end] = outcome.ends.get(end, 0) + 1
    outcome.peak = max(outcome.peak, line.get("peak", 0))
    outcome.slowest = max(outcome.slowest, line.get("seconds", 0.0))
    if line["fault"]:
        number = line["number"]
        outcome.faults.append(
            f"mutant {number} of seed {outcome.seed}, kept as {keep(outcome.seed, number)}; repeat it with "
            f"python -m tests.mutants.reading --seed {outcome.seed} --only {number} --folder FOLDER\n"
            f"{line['fault']}"
        )


def keep(seed: int, number: int) -> Path:
    """Write a mutant to a file that stays, and return its path."""
    mutant = Mutant(seed, number)
    folder = Path(tempfile.gettempdir()) / f"trainyard-mutants-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{seed}-{number}-{mutant.origin.name}{Path(mutant.name).suffix}"
    path.write_bytes(mutant.body)
    return path
