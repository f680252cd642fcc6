"""Runs the real runner, but a training with the seed `SEED` emits points on command instead of training.

Commands are read from the file `<home>/flood.json`, answers are written to `<home>/flooded.json`; see
benchmarks/event_path.py.
"""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from jobs.messages.events import Metric
from jobs.messages.task import Task
from workers.runner import serve
from workers.runner.__main__ import main
from workers.runner.event_reporter import EventReporter
from workers.runner.registry import RunTask, load

SEED = 70_001
Order = dict[str, Any]


def installation_home() -> Path:
    """Return the installation's home. A runner's own home is `<home>/nodes/<name>/runners/<number>`."""
    return Path(os.environ["HOME"]).parents[3]


def names_of(order: Order) -> list[str]:
    """Return the names of a command's series."""
    return [f"{order['tag']}{number}" for number in range(order["series"])]


def flood(report: EventReporter, order: Order) -> None:
    """Emit `calls` calls of `series` points each, at `rate` points per second (0: full speed)."""
    names, rate, began = names_of(order), order["rate"], time.perf_counter()
    for call in range(order["calls"]):
        values = {name: (call * len(names) + number) / 7 for number, name in enumerate(names)}
        if order["naive"]:  # one event per point, without batching
            for name, value in values.items():
                now = time.time()
                report._writer.send(Metric(time=now, points=((name, float(call), value, now),)))
        else:
            report.metric(call, values)
        ahead = (call + 1) * len(names) / rate - (time.perf_counter() - began) if rate else 0.0
        if ahead > 0.005:
            time.sleep(ahead)


def singles(report: EventReporter, order: Order) -> None:
    """Emit single points into an idle system; the value of each is the time it was emitted."""
    for number in range(order["calls"]):
        time.sleep(order["pause"])
        report.metric(number, {order["tag"]: time.time()})


def trials(report: EventReporter, order: Order) -> None:
    """Emit the events of short trials: all epochs of ten series within 0.3 s."""
    names = names_of(order)
    for trial in range(1, order["trials"] + 1):
        for epoch in range(1, order["calls"] + 1):
            time.sleep(0.3 / order["calls"])
            report.metric(epoch, dict.fromkeys(names, 1.0 / (epoch + trial)), execution=trial)
            report.progress(epoch, order["calls"], "epochs")


COMMANDS = {"flood": flood, "singles": singles, "trials": trials}


def follow_commands(task: Task, report: EventReporter) -> dict[str, Any]:
    """Execute commands until one is `end`."""
    del task
    home, done, reported = installation_home(), 0, time.monotonic()
    while True:
        path = home / "flood.json"
        order = json.loads(path.read_text()) if path.exists() else {"number": 0}
        if order["number"] > done:
            if order["do"] == "end":
                return {}
            began, spent = time.time(), time.thread_time()
            COMMANDS[order["do"]](report, order)
            answer = {"began": began, "emitted": time.time(), "thread": time.thread_time() - spent}
            report._writer.flush()
            done = order["number"]
            answer |= {"number": done, "pid": os.getpid(), "threads": threading.active_count()}
            (home / "flooded.tmp").write_text(json.dumps(answer))
            (home / "flooded.tmp").replace(home / "flooded.json")
        elif time.monotonic() - reported > 10:
            reported = time.monotonic()
            report.progress(0, 1, "orders")  # without progress the watchdog would end the task
        time.sleep(0.01)


def load_task(task: Task) -> RunTask:
    """Return the function that runs a task; ours for the training that emits points."""
    spec = getattr(task, "spec", None)
    return follow_commands if spec is not None and spec.fit.seed == SEED else load(task)


def run() -> None:
    """Run the runner."""
    serve.load = load_task  # type: ignore[assignment]
    main()


if __name__ == "__main__":
    run()
