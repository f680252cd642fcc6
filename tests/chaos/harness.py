"""Rounds of kills at seeded random times against one running installation.

A round submits a search and a training, then kills one process per kind at times drawn over an undisturbed
round's duration. Trainyard alone restarts the parts.
"""

import os
import random
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import psutil

from tests.chaos.doomed_runner import POINTS, accept_requests
from tests.flow.readers import SocketReader
from tests.flow.rows import read
from tests.flow.specs import Spec, search, spec
from tests.flow.yard import FINAL, RunningYard
from tests.ops.conftest import wait_for

KINDS = (
    *("runner", "forkserver", "worker", "web", "scheduler", "model", "modelforks", "serving", "broker"),
    "checkpoint",
)
"""The processes that are killed: parts of `up` by their names, and those below them that `find` names."""
MODEL = "chaos"
SEARCH = spec(
    search=search(executions_per_trial=2, max_trials=2),
    fit={"epochs": 15, "batch_size": 16, "learning_rate": 0.01},
)
TRAINING = spec(
    model={"kind": "template", "template": "mlp", "args": {"units": 16, "layers": 1, "dropout": 0.2}},
    fit={"epochs": 50, "batch_size": 16, "learning_rate": 0.01, "seed": 5},
)
LONG_TRAINING = TRAINING | {"fit": {**TRAINING["fit"], "epochs": 3000}}
"""Long enough to be interrupted on a fast machine, where an epoch takes a millisecond."""
SPECS = {"search": SEARCH, "training": TRAINING}
TIMEOUT = float(os.environ.get("TRAINYARD_CHAOS_PATIENCE", "900"))


@dataclass
class Undisturbed:
    """A round's duration and results without kills."""

    seconds: float
    facts: dict[str, dict[str, Any]]


@dataclass
class Round:
    """One seed with its jobs and kills."""

    installation: RunningYard
    seed: int
    jobs: list[tuple[str, int]] = field(default_factory=list)
    history: list[str] = field(default_factory=list)

    def run(self, undisturbed: Undisturbed) -> None:
        """Kill one process of each kind while the jobs run, and check all invariants afterwards."""
        rng = random.Random(self.seed)
        plan = sorted((rng.uniform(0, undisturbed.seconds), kind) for kind in KINDS)
        with Predicting(self.installation) as answers:
            readers = self.submit()
            started = time.monotonic()
            for moment, kind in plan:
                self.kill_at(started + moment, kind, rng)
            self.finish(readers)
        for (name, job), facts in zip(self.jobs, self.check(), strict=True):
            unbroken = undisturbed.facts[name]
            assert facts == unbroken, (
                f"{name} (job {job}) ended with {facts}, an unbroken one with {unbroken}"
            )
        assert not answers.wrong, answers.wrong
        assert answers.right

    def kill_at(self, moment: float, kind: str, rng: random.Random) -> None:
        """Kill one process at a time on the monotonic clock, and record it."""
        _until(moment)
        late = time.monotonic() - moment
        self.history.append(f"{kind}, {late:.2f} s after its moment: {self._kill(kind, rng)}")

    def submit(self) -> list[SocketReader]:
        """Queue the jobs, each with a live reader."""
        readers = []
        for name in SPECS:
            job = self.submit_one(name, SPECS[name])
            readers.append(SocketReader(self.installation.urls["web"], self.installation.bearer("ada"), job))
            readers[-1].start()
        return readers

    def submit_one(self, name: str, body: Spec) -> int:
        """Queue one job that belongs to this round."""
        job = self.installation.submit(body, name=f"{name} {self.seed}")
        self.jobs.append((name, job))
        return job

    def finish(self, readers: list[SocketReader]) -> None:
        """Wait until all jobs have ended and the readers have seen every event exactly once."""
        for _, job_id in self.jobs:
            job = self.installation.until_final(job_id, TIMEOUT)
            assert job["state"] == "completed", (job["error"], self.installation.log_of(job_id))
        for reader in readers:
            last = self.installation.events_of(reader.job)[-1]["cursor"]
            reader.wait_until(last)
            assert reader.cursors == list(range(1, last + 1)), "the live view has a gap or a duplicate"
        wait_for(self._is_whole, "every part to be up again", TIMEOUT)

    def _is_whole(self) -> bool:
        is_up = set(self.installation.parts()) >= {"web", "scheduler", "worker-1", "serving", "broker"}
        return is_up and (not self._serves() or bool(find(self.installation, "model")))

    def _serves(self) -> bool:
        return bool(read(self.installation.home, "SELECT 1 FROM jobs_releaserecord"))

    def _kill(self, kind: str, rng: random.Random) -> str:
        if kind == "checkpoint":
            point = rng.choice(POINTS)
            self._doom(point)
            return f"a runner inside {point}"
        while True:
            victim = self._victim(kind)
            with suppress(psutil.NoSuchProcess):  # it ended by itself, so it was not killed
                if kind == "broker":
                    victim.suspend()  # it must not write while its data are deleted
                    shutil.rmtree(self.installation.home / "broker", ignore_errors=True)
                victim.kill()
                return f"{kind} {victim.pid}"

    def _doom(self, point: str) -> None:
        order = accept_requests(self.installation.home) / point
        order.touch()
        wait_for(lambda: not order.exists() or self._needs_work(), f"a runner to die in {point}", TIMEOUT)

    def _victim(self, kind: str) -> psutil.Process:
        if kind == "modelforks" and not find(self.installation, kind):
            # It returns with the next start of a model's process.
            with suppress(psutil.NoSuchProcess):
                self._victim("model").kill()

        def first_victim() -> psutil.Process | None:
            victims = find(self.installation, kind)
            if kind in ("runner", "forkserver") and not victims:
                self._needs_work()
            return victims[0] if victims else None

        return wait_for(first_victim, f"a {kind} to kill", TIMEOUT)

    def _needs_work(self) -> bool:
        """Submit another training if all jobs have ended. Always returns False."""
        if all(self.installation.job(job)["state"] in FINAL for _, job in self.jobs):
            self.submit_one("training", TRAINING)
        return False

    def check(self) -> list[dict[str, Any]]:
        """Check all invariants of database and files, and return each job's results."""
        jobs = [job for _, job in self.jobs]
        report = self.installation.call("tests.chaos.invariants", "report", *jobs)
        assert not report["problems"], "\n".join(report["problems"])
        return [report["facts"][str(job)] for job in jobs]


def find(installation: RunningYard, kind: str) -> list[psutil.Process]:
    """Return the living processes by their kind."""
    parts = installation.parts()
    match kind:
        case "runner":
            return _named(parts.get("worker-1"), "ty-runner")
        case "forkserver":
            return _named(parts.get("worker-1"), "ty-forkserver")
        case "model":
            return _named(parts.get("serving"), "ty-model")
        case "modelforks":
            return _named(parts.get("serving"), "ty-modelforks")
        case "worker":
            return [parts["worker-1"]] if "worker-1" in parts else []
        case _:
            return [parts[kind]] if kind in parts else []


def _named(parent: psutil.Process | None, name: str) -> list[psutil.Process]:
    """Return the processes of a name below `parent`, newest first: an older runner may be idle."""
    try:
        below = parent.children(recursive=True) if parent else []
        processes = [child for child in below if child.name() == name]
        return sorted(processes, key=psutil.Process.create_time, reverse=True)
    except psutil.Error:
        return []


def _until(moment: float) -> None:
    threading.Event().wait(max(0.0, moment - time.monotonic()))


class Predicting:
    """A client that requests predictions continuously. Refusals are allowed, wrong answers are not."""

    def __init__(self, installation: RunningYard) -> None:
        self.installation = installation
        self.right = 0
        self.refused = 0
        self.wrong: list[Any] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._expected = installation.predict(MODEL, [[5.1, 3.5, 1.4, 0.2]])

    def __enter__(self) -> "Predicting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        before = self.right
        try:
            wait_for(lambda: self.right > before, "a prediction after the kills", TIMEOUT)
        finally:
            self._over.set()
            self._thread.join(30)

    def _ask(self) -> None:
        while not self._over.wait(0.2):
            try:
                answer = self.installation.predict(MODEL, [[5.1, 3.5, 1.4, 0.2]])
            except (AssertionError, httpx2.HTTPError):
                self.refused += 1
                continue
            if answer == self._expected:
                self.right += 1
            else:
                self.wrong.append(answer)


def measure(installation: RunningYard) -> Undisturbed:
    """Run a round's jobs without a kill."""
    calm = Round(installation, seed=0)
    readers = calm.submit()
    started = time.monotonic()
    calm.finish(readers)
    seconds = time.monotonic() - started
    names = [name for name, _ in calm.jobs]
    return Undisturbed(seconds, dict(zip(names, calm.check(), strict=True)))
