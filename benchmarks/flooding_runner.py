"""The real runner, but a training whose seed is `SEED` emits points on order instead of training.

Orders are a file `<home>/flood.json`, answers `<home>/flooded.json`; see benchmarks/event_path.py.
"""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from jobs.contracts.events import Metric
from jobs.contracts.task_parts import Task
from workers.runner import serve
from workers.runner.__main__ import main
from workers.runner.event_reporter import EventReporter
from workers.runner.registry import RunTask, load

SEED = 70_001
Order = dict[str, Any]


def home_of_the_yard() -> Path:
    """Return the yard's home: a runner's own is `<home>/nodes/<name>/runners/<number>`."""
    return Path(os.environ["HOME"]).parents[3]


def names_of(order: Order) -> list[str]:
    """Return the names of an order's series."""
    return [f"{order['tag']}{number}" for number in range(order["series"])]


def flood(report: EventReporter, order: Order) -> None:
    """Emit `calls` calls of `series` points each, `rate` points a second (0: as fast as it goes)."""
    names, rate, began = names_of(order), order["rate"], time.perf_counter()
    for call in range(order["calls"]):
        values = {name: (call * len(names) + number) / 7 for number, name in enumerate(names)}
        if order["naive"]:  # one event a point, past all gathering
            for name, value in values.items():
                now = time.time()
                report._writer.send(Metric(time=now, points=((name, float(call), value, now),)))
        else:
            report.metric(call, values)
        ahead = (call + 1) * len(names) / rate - (time.perf_counter() - began) if rate else 0.0
        if ahead > 0.005:
            time.sleep(ahead)


def singles(report: EventReporter, order: Order) -> None:
    """Emit one point at a time into an idle system; its value is the moment it was emitted."""
    for number in range(order["calls"]):
        time.sleep(order["pause"])
        report.metric(number, {order["tag"]: time.time()})


def trials(report: EventReporter, order: Order) -> None:
    """Say what a search's short trials say: all epochs of ten series within 0.3 s."""
    names = names_of(order)
    for trial in range(1, order["trials"] + 1):
        for epoch in range(1, order["calls"] + 1):
            time.sleep(0.3 / order["calls"])
            report.metric(epoch, dict.fromkeys(names, 1.0 / (epoch + trial)), execution=trial)
            report.progress(epoch, order["calls"], "epochs")


DEEDS = {"flood": flood, "singles": singles, "trials": trials}


def obey(task: Task, report: EventReporter) -> dict[str, Any]:
    """Follow orders until one says to end."""
    del task
    home, done, heard = home_of_the_yard(), 0, time.monotonic()
    while True:
        path = home / "flood.json"
        order = json.loads(path.read_text()) if path.exists() else {"number": 0}
        if order["number"] > done:
            if order["do"] == "end":
                return {}
            began, spent = time.time(), time.thread_time()
            DEEDS[order["do"]](report, order)
            answer = {"began": began, "emitted": time.time(), "thread": time.thread_time() - spent}
            report._writer.flush()
            done = order["number"]
            answer |= {"number": done, "pid": os.getpid(), "threads": threading.active_count()}
            (home / "flooded.tmp").write_text(json.dumps(answer))
            (home / "flooded.tmp").replace(home / "flooded.json")
        elif time.monotonic() - heard > 10:
            heard = time.monotonic()
            report.progress(0, 1, "orders")  # silence would look like a hang
        time.sleep(0.01)


def load_or_obey(task: Task) -> RunTask:
    """Return what runs a task; ours for the training that is to flood."""
    spec = getattr(task, "spec", None)
    return obey if spec is not None and spec.fit.seed == SEED else load(task)


def run() -> None:
    """Be the runner."""
    serve.load = load_or_obey  # type: ignore[assignment]
    main()


if __name__ == "__main__":
    run()
