"""Measures the path of metric points from a runner to a REST client: pipe, validation, fence and commit.

Run `python -m benchmarks.event_path [--points 300000]`. It starts a complete installation (embedded broker,
SQLite). A runner emits points through the engine's `Report`: at full speed, then at a fixed rate, then in the
naive form with one event per point. Single points are sent into an idle system, and their delay is measured
at a reader of the database and at a WebSocket. Then come the events of a search's short trials. Finally a
real training runs with and without 50,000 points per second beside it, in alternating windows. CPU time is
counted beyond that of an idle installation. All points of each flood are read back by REST and compared, from
the curves and from the events.
"""

import argparse
import contextlib
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import psutil
from websockets.sync.client import connect

from benchmarks.flooding_runner import SEED, names_of
from tests.flow.specs import spec
from tests.flow.yard import RunningYard, open_yard

PACE = 50_000
SERIES = 10
WINDOW = 2.0
ORDERS: list[tuple["Beside", ...]] = [*permutations(("nothing", "points", "spinning"))]
SPINNING = """
import sys, time
share, seconds = map(float, sys.argv[1:])
ends = time.perf_counter() + seconds
while (began := time.perf_counter()) < ends:
    while time.perf_counter() < began + share * 0.02: pass
    time.sleep(max(1 - share, 0) * 0.02)
"""
IDLE = 6.0


class Bench:
    """A test installation with one runner that emits points on command."""

    def __init__(self, yard: RunningYard) -> None:
        self.yard = yard
        self._number = 0
        self.job = yard.submit(spec(fit={"epochs": 1, "batch_size": 16, "seed": SEED}))
        self.pid = self.order("singles", tag="hello", calls=1, pause=0.0)["pid"]
        before = self.cpu()
        time.sleep(IDLE)
        self.idle = {name: (spent - before[name]) / IDLE for name, spent in self.cpu().items()}

    def begin(self, do: str, **order: Any) -> None:
        """Send a command to the runner."""
        self._number += 1
        path = self.yard.home / "flood.tmp"
        path.write_text(json.dumps({"number": self._number, "do": do, "series": SERIES, **order}))
        path.replace(self.yard.home / "flood.json")

    def done(self) -> dict[str, Any]:
        """Wait until the newest command has been executed: all points are in the pipe."""
        path = self.yard.home / "flooded.json"
        while True:
            if path.exists() and (answer := json.loads(path.read_text()))["number"] == self._number:
                return dict(answer)
            time.sleep(0.01)

    def order(self, do: str, **order: Any) -> dict[str, Any]:
        """Send a command and wait until it has been executed."""
        self.begin(do, **order)
        return self.done()

    def query_value(self, query: str, *values: object) -> Any:
        """Return the first column of the first row of a query."""
        with closing(self.open()) as database:
            return database.execute(query, values).fetchone()[0]

    def open(self) -> sqlite3.Connection:
        """Open the installation's database for reading."""
        return sqlite3.connect(f"{self.yard.home.as_uri()}/trainyard.sqlite3?mode=ro", uri=True)

    def until_readable(self, tag: str, points: int) -> float:
        """Wait until `points` points are committed; return the time."""
        query = "SELECT coalesce(sum(count), 0) FROM jobs_metricseries WHERE job_id = ? AND name LIKE ?"
        while self.query_value(query, self.job, f"{tag}%") < points:
            time.sleep(0.005)
        return time.time()

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds of each process of the path."""
        processes = {**self.yard.parts(), "runner": psutil.Process(self.pid)}
        spent = {name: process.cpu_times() for name, process in processes.items()}
        return {name.partition("-")[0]: times.user + times.system for name, times in spent.items()}

    def spent(self, before: dict[str, float], seconds: float) -> dict[str, float]:
        """Return the CPU seconds of each process since `before`, minus those of an idle installation."""
        now = self.cpu()
        return {name: max(0.0, now[name] - before[name] - self.idle[name] * seconds) for name in now}

    def pages(self) -> int:
        """Return the size of the database in bytes."""
        return int(self.query_value("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))


def flood(bench: Bench, tag: str, points: int, *, rate: int, naive: bool, label: str) -> float:
    """Emit points, read them back and print the row; return the number of cores used."""
    order = {"tag": tag, "calls": points // SERIES, "rate": rate, "naive": naive, "series": SERIES}
    cursor = bench.query_value("SELECT event_seq FROM jobs_job WHERE id = ?", bench.job)
    size, before = bench.pages(), bench.cpu()
    answer = bench.order("flood", **order)
    readable = bench.until_readable(tag, points)
    seconds = readable - answer["began"]
    spent = {name: cpu / points * 1e6 for name, cpu in bench.spent(before, seconds).items()}
    grown = bench.pages() - size
    columns = "".join(f"{spent.get(name, 0.0):9.2f}" for name in ("runner", "worker", "web", "broker"))
    emit = answer["thread"] / points * 1e6
    print(f"{label:22}{points / seconds:12,.0f}{emit:9.2f}{columns}{grown / points:9.0f}", flush=True)
    check(bench, order, cursor)
    return sum(spent.values()) / 1e6 * points / seconds


def check(bench: Bench, order: dict[str, Any], cursor: int) -> None:
    """Compare the points that REST returns with those emitted, from the curves and from the events."""
    names, calls = names_of(order), order["calls"]
    want = {name: [(c, (c * len(names) + i) / 7) for c in range(calls)] for i, name in enumerate(names)}
    began = time.perf_counter()
    for name in names:
        for start in range(0, calls, 100_000):
            query = {"names": name, "max_points": 100_000, "from": start, "to": start + 99_999}
            (series,) = bench.yard.ada.get(f"/jobs/{bench.job}/metrics", **query)["series"]
            assert series["total_points"] == calls, (name, series["total_points"])
            received = [(point[0], point[1]) for point in series["points"]]
            assert received == want[name][start : start + 100_000], name
    curves = time.perf_counter() - began
    from_events: dict[str, list[tuple[float, float]]] = defaultdict(list)
    last = cursor
    for event in events_after(bench, cursor):
        assert event["cursor"] == last + 1, (last, event["cursor"])
        last = event["cursor"]
        for name, x, value, _ in event["points"] if event["type"] == "metric" else ():
            from_events[name].append((x, value))
    assert {name: from_events[name] for name in names} == want
    print(f"{'':22}every point once and in order; curves read in {curves:.1f} s", flush=True)


def events_after(bench: Bench, cursor: int) -> Iterator[dict[str, Any]]:
    """Yield all events after a cursor, page by page."""
    while (page := bench.yard.ada.get(f"/jobs/{bench.job}/events", after=cursor, limit=5000))["items"]:
        yield from page["items"]
        cursor = page["cursor"]


def delays(bench: Bench, count: int) -> None:
    """Print the delays of single points, to a reader of the database and to a WebSocket."""
    framed: list[float] = []
    ready, over = threading.Event(), threading.Event()
    listener = threading.Thread(target=listen, args=(bench, framed, ready, over))
    listener.start()
    ready.wait()
    before, began = bench.cpu(), time.time()
    bench.begin("singles", tag="single", calls=count, pause=0.25)
    committed: list[float] = []
    seen = None
    with closing(bench.open()) as database:
        query = "SELECT last_value FROM jobs_metricseries WHERE job_id = ? AND name = 'single'"
        while len(committed) < count:
            row = database.execute(query, (bench.job,)).fetchone()
            if row is not None and row[0] != seen:
                seen = row[0]
                committed.append((time.time() - seen) * 1000)
            time.sleep(0.0002)
    time.sleep(1.0)
    cost = bench.spent(before, time.time() - began)
    over.set()
    listener.join()
    for label, times in (("to a committed row", committed), ("to a WebSocket frame", framed)):
        p10, p50, p95 = (sorted(times)[int(len(times) * part)] for part in (0.1, 0.5, 0.95))
        print(
            f"single points, {label:22} p10 {p10:6.2f} ms   p50 {p50:6.2f} ms   p95 {p95:6.2f} ms   "
            f"n {len(times)}"
        )
    spent = ", ".join(f"{name} {cpu / count * 1e3:.1f}" for name, cpu in cost.items())
    print(f"CPU ms per single point: {spent}", flush=True)


def listen(bench: Bench, framed: list[float], ready: threading.Event, over: threading.Event) -> None:
    """Subscribe to the job by WebSocket and record the delay of each single point."""
    address = bench.yard.urls["web"].replace("http", "ws", 1) + "/ws/v1/token"
    with connect(address, additional_headers=bench.yard.bearer("ada")) as socket:
        after = bench.query_value("SELECT event_seq FROM jobs_job WHERE id = ?", bench.job)
        socket.send(json.dumps({"op": "subscribe", "job": bench.job, "after": after}))
        time.sleep(1.0)
        ready.set()
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                frame = json.loads(socket.recv(timeout=0.5))
                now = time.time()
                for event in frame.get("items", ()):
                    points = event.get("points", ())
                    framed += [(now - point[2]) * 1000 for point in points if point[0] == "single"]


def bookkeeping(bench: Bench, count: int) -> None:
    """Print the cost of recording a short trial: ten series of a hundred epochs within 0.3 s."""
    before, cursor = bench.cpu(), bench.query_value("SELECT event_seq FROM jobs_job WHERE id = ?", bench.job)
    answer = bench.order("trials", tag="trial", trials=count, calls=100)
    readable = bench.until_readable("trial", count * SERIES * 100)
    cost = bench.spent(before, readable - answer["began"])
    events = bench.query_value("SELECT event_seq FROM jobs_job WHERE id = ?", bench.job) - cursor
    spent = {name: cpu / count * 1e3 for name, cpu in cost.items()}
    emit = answer["thread"] / count * 1e3
    print(
        f"a trial of 1,000 points in 0.3 s: CPU ms runner {spent['runner']:.1f} (its own thread {emit:.1f}), "
        f"worker {spent['worker']:.1f}, web {spent['web']:.1f}; {events / count:.0f} events",
        flush=True,
    )


Beside = Literal["nothing", "points", "spinning"]


class Window(NamedTuple):
    """A period of a training, and the load beside it."""

    beside: Beside
    begin: float
    end: float
    cpu: float  # seconds used by the training


def slowdown(bench: Bench, pairs: int, share: float) -> None:
    """Print how much slower the epochs of a real training are with a flood of points beside it.

    Args:
        bench: the installation.
        pairs: number of rounds.
        share: of a core that the flood uses.
    """
    model = {"kind": "template", "template": "mlp", "args": {"units": 512, "layers": 2}}
    fit = {"epochs": 100_000, "batch_size": 32, "learning_rate": 0.001, "seed": 3}
    training = bench.yard.submit(spec("digits", model=model, fit=fit))
    bench.yard.until(training, lambda job: (job["progress"] or {}).get("done", 0) > 20, "20 epochs")
    mine = [process for process in bench.yard.everything() if process.name() == "ty-runner"]
    trainer = busiest(process for process in mine if process.pid != bench.pid)
    windows: list[Window] = []
    for pair in range(pairs):
        for kind in ORDERS[pair % len(ORDERS)]:
            if not trainer.is_running():
                raise SystemExit(f"the training ended too early: {bench.yard.ada.get(f'/jobs/{training}')}")
            windows.append(window_of(bench, trainer, kind, f"beside{pair}-", share))
    (series,) = bench.yard.ada.get(f"/jobs/{training}/metrics", names="loss", max_points=100_000)["series"]
    bench.yard.ada.post(f"/jobs/{training}/kill")
    moments = [point[4] for point in series["points"]]
    beside = {"points": f"{PACE:,} points/s", "spinning": f"a process that spins for {share:.2f} cores"}
    for label, cost in (("wall", wall_per_epoch), ("CPU", cpu_per_epoch)):
        costs = {(n // 3, window.beside): cost(window, moments) for n, window in enumerate(windows)}
        for kind, description in beside.items():
            slower = sorted((costs[n, kind] / costs[n, "nothing"] - 1) * 100 for n in range(pairs))
            print(
                f"training beside {description}, {label} per epoch: {statistics.median(slower):+.1f} %, "
                f"median of {pairs} rounds, half of them within "
                f"{slower[pairs // 4]:+.1f} and {slower[-(pairs // 4) - 1]:+.1f}",
                flush=True,
            )


def window_of(bench: Bench, trainer: psutil.Process, beside: Beside, tag: str, share: float) -> Window:
    """Create load beside the training for `WINDOW` seconds."""
    began, before = time.time(), cpu_of(trainer)
    if beside == "points":
        calls = int(WINDOW * PACE) // SERIES
        bench.order("flood", tag=tag, calls=calls, rate=PACE, naive=False)
        bench.until_readable(tag, calls * SERIES)
    elif beside == "spinning":
        subprocess.run([sys.executable, "-S", "-c", SPINNING, str(share), str(WINDOW)], check=True)
    else:
        time.sleep(WINDOW)
    return Window(beside, began, time.time(), cpu_of(trainer) - before)


def busiest(processes: Iterable[psutil.Process]) -> psutil.Process:
    """Return the process with most of the CPU time, after standbys have finished starting."""
    candidates = list(processes)
    while True:
        before = [cpu_of(process) for process in candidates]
        time.sleep(1.0)
        used = [cpu_of(process) - was for process, was in zip(candidates, before, strict=True)]
        if max(used) > 0.9 * sum(used):
            return candidates[used.index(max(used))]


def cpu_of(process: psutil.Process) -> float:
    """Return the CPU seconds of a process."""
    times = process.cpu_times()
    return float(times.user + times.system)


def epochs_of(window: Window, moments: Sequence[float]) -> list[float]:
    """Return the end times of the epochs within a window."""
    return [moment for moment in moments if window.begin <= moment <= window.end]


def wall_per_epoch(window: Window, moments: Sequence[float]) -> float:
    """Return the seconds per epoch."""
    inside = epochs_of(window, moments)
    return (inside[-1] - inside[0]) / (len(inside) - 1)


def cpu_per_epoch(window: Window, moments: Sequence[float]) -> float:
    """Return the CPU seconds per epoch, which other load on the machine hardly affects."""
    return window.cpu / len(epochs_of(window, moments))


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.event_path", description=__doc__)
    parser.add_argument("--points", type=int, default=300_000)
    parser.add_argument("--naive", type=int, default=20_000, help="points of the naive form")
    parser.add_argument("--singles", type=int, default=60)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        # The runner reads its commands in the home of the installation, which a user of its own could not.
        with open_yard(
            home, TRAINYARD_RUNNER_MODULE="benchmarks.flooding_runner", TRAINYARD_RUNNER_UIDS="off"
        ) as yard:
            yard.open()
            yard.until_ready("digits")
            bench = Bench(yard)
            print(f"{'':36}CPU us per point", flush=True)
            columns = ("points/s", "emitting", "runner", "worker", "web", "broker", "bytes")
            print(f"{'':22}{columns[0]:>12}" + "".join(f"{name:>9}" for name in columns[1:]), flush=True)
            run(bench, options)


def run(bench: Bench, options: argparse.Namespace) -> None:
    """Measure everything."""
    flood(bench, "warm", 10_000, rate=0, naive=False, label="(warm-up)")
    flood(bench, "full", options.points, rate=0, naive=False, label="full speed")
    share = flood(bench, "paced", options.points, rate=PACE, naive=False, label=f"paced at {PACE:,}/s")
    flood(bench, "naive", options.naive, rate=0, naive=True, label="naive: event per point")
    delays(bench, options.singles)
    bookkeeping(bench, options.trials)
    slowdown(bench, options.pairs, share)
    bench.begin("end")
    bench.yard.until_completed(bench.job)


if __name__ == "__main__":
    main()
