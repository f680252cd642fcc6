"""Measures the use of an idle installation, and compares it with another checkout of Trainyard.

Run `python -m benchmarks.idle [--earlier CHECKOUT] [--windows 5] [--seconds 30]`, through
`scripts/with-postgres` for a PostgreSQL database, whose transactions are counted too. Both installations run
at the same time, each started by `up` in a new home. After a minute of rest, both are measured. Printed
are the medians of all windows and their ratio: the processor time of all processes in percent of a core, the
memory in GiB (shared pages are divided among the processes that have them), the number of processes, and the
transactions a second.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg

HERE = Path(__file__).resolve().parents[1]
REST = 60.0
POSTGRES = os.environ.get("TRAINYARD_TEST_POSTGRES_URL", "")


class Use(NamedTuple):
    """The use of an installation in a window."""

    cpu: float
    memory: float
    processes: float
    transactions: float


class Idle:
    """An installation without any work."""

    def __init__(self, supervisor: psutil.Process, database: str) -> None:
        self._supervisor, self._database = supervisor, database

    def processes(self) -> list[psutil.Process]:
        """Return the processes of all parts."""
        return [self._supervisor, *self._supervisor.children(recursive=True)]

    def spent(self) -> float:
        """Return the CPU seconds of the processes and of the children that they have waited for."""
        return float(sum(sum(process.cpu_times()[:4]) for process in self.processes()))

    def memory(self) -> float:
        """Return the memory in GiB."""
        return float(sum(process.memory_full_info().pss for process in self.processes())) / 2**30

    def transactions(self) -> int:
        """Return how many transactions the database has ended; 0 for SQLite."""
        if not self._database:
            return 0
        with psycopg.connect(POSTGRES, autocommit=True) as connection:
            query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"
            row = connection.execute(query, [self._database]).fetchone()
        return int(row[0]) if row is not None else 0


@contextmanager
def started(checkout: Path, name: str) -> Iterator[Idle]:
    """Start `up` of a checkout in a new home and wait until it is ready."""
    with tempfile.TemporaryDirectory(prefix="idle-") as folder, ExitStack() as ends:
        home = Path(folder, "home")
        environment = os.environ | {"TRAINYARD_HOME": str(home)}
        if POSTGRES:
            with psycopg.connect(POSTGRES, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"')
            environment["TRAINYARD_DATABASE_URL"] = POSTGRES.replace("/postgres?", f"/{name}?")
        command = [sys.executable, "manage.py", "up", "--port", "0", "--serving-port", "0"]
        with Path(folder, "log").open("w") as log:
            up = subprocess.Popen(command, cwd=checkout, env=environment, stdout=log, stderr=log)
        ends.callback(up.wait)
        ends.callback(up.terminate)
        while not (home / "run" / "urls.json").exists():
            if up.poll() is not None:
                raise SystemExit(f"{checkout} did not start: {Path(folder, 'log').read_text()[-2000:]}")
            time.sleep(0.2)
        yield Idle(psutil.Process(up.pid), name if POSTGRES else "")


def measured(installations: dict[str, Idle], seconds: float) -> dict[str, Use]:
    """Return what each installation used in one window."""
    before = {name: (idle.spent(), idle.transactions()) for name, idle in installations.items()}
    began = time.perf_counter()
    time.sleep(seconds)
    uses = {}
    for name, idle in installations.items():
        took = time.perf_counter() - began
        cpu, transactions = (
            (after - earlier) / took
            for after, earlier in zip((idle.spent(), idle.transactions()), before[name], strict=True)
        )
        uses[name] = Use(cpu * 100, idle.memory(), len(idle.processes()), transactions)
    return uses


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--earlier", type=Path, help="another checkout with its own commands")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    checkouts = {"now": HERE} | ({"earlier": options.earlier} if options.earlier else {})
    with ExitStack() as ends:
        running = {
            name: ends.enter_context(started(path, f"idle_{name}")) for name, path in checkouts.items()
        }
        time.sleep(REST)
        windows = [measured(running, options.seconds) for _ in range(options.windows)]
    medians = {
        name: Use(*map(statistics.median, zip(*(window[name] for window in windows), strict=True)))
        for name in checkouts
    }
    print(f"{'':10}{'% of a core':>13}{'GiB':>8}{'processes':>11}{'transactions/s':>16}")
    for name, use in medians.items():
        print(f"{name:10}{use.cpu:13.2f}{use.memory:8.2f}{use.processes:11.0f}{use.transactions:16.1f}")
    if "earlier" in medians:
        ratios = [
            new / old if old else float("nan")
            for new, old in zip(medians["now"], medians["earlier"], strict=True)
        ]
        print(f"{'ratio':10}{ratios[0]:13.2f}{ratios[1]:8.2f}{ratios[2]:11.2f}{ratios[3]:16.2f}")


if __name__ == "__main__":
    main()
