"""Builds states for decisions about placements, and lets time pass in them."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.placement import shares
from jobs.placement.decision import decide
from jobs.placement.state import Decision, Machine, Reservation, Running, State, Work

HOUR = 3600.0
NOW = 1_000_000.0


def work(job: int, *, person: int = 1, **fields: Any) -> Work:
    """Return work that any machine of the pool can run, older the smaller its job's number is."""
    defaults: dict[str, Any] = {
        "key": job,
        "job": job,
        "person": person,
        "project": None,
        "priority": 50,
        "queued": NOW + job,
        "number": 0,
        "slots": 1,
        "pool": "default",
        "needs": "any",
    }
    return Work(**defaults | fields)


def machine(key: int = 1, slots: int = 4, **fields: Any) -> Machine:
    """Return an empty machine."""
    defaults: dict[str, Any] = {"key": key, "name": f"w{key}", "pool": "default", "slots": slots}
    return Machine(**defaults | {"free": slots} | fields)


def running(job: int, *, person: int | None = 1, **fields: Any) -> Running:
    """Return work that holds a slot of the first machine."""
    defaults: dict[str, Any] = {
        "key": 1000 + job,
        "job": job,
        "person": person,
        "project": None,
        "machine": 1,
        "slots": 1,
        "priority": 50,
        "started": NOW,
        "resumes": True,
    }
    return Running(**defaults | fields)


def reserved(**fields: Any) -> Reservation:
    """Return a reservation of the whole pool for person 9, from now on for an hour."""
    defaults: dict[str, Any] = {
        "key": 1,
        "pool": "default",
        "machine": "",
        "slots": None,
        "begins": NOW,
        "ends": NOW + HOUR,
        "person": 9,
        "project": None,
    }
    return Reservation(**defaults | fields)


def state(waiting: Sequence[Work], machines: Sequence[Machine] = (), **fields: Any) -> State:
    """Return a state in which every machine can run every work."""
    given = list(machines) or [machine()]
    taken: dict[int, int] = defaultdict(int)
    for attempt in fields.get("running", ()):
        taken[attempt.machine] += attempt.slots
    rest = [replace(one, free=one.free - taken[one.key]) for one in given]
    largest = {one.slots for one in waiting}
    fitting: dict[Hashable, list[int]] = {
        (f"{slots} slots"): [one.key for one in rest if one.slots >= slots] for slots in sorted(largest)
    }
    ready = [replace(one, needs=f"{one.slots} slots") for one in waiting]
    return State(now=NOW, waiting=ready, machines=rest, fitting=fitting, **fields)


def placed(decision: Decision) -> list[int]:
    """Return the jobs that were placed, in order."""
    return [placement.work.job for placement in decision.placements]


@dataclass
class Run:
    """Work that was placed, and when it ends."""

    work: Work
    attempt: Running
    ends: float


@dataclass
class World:
    """A pool in which work is placed again and again while time passes.

    Attributes:
        machines: its machines.
        fields: further fields of each state.
        now: the time.
        waiting: the work that waits.
        runs: the work that runs.
        done: the jobs that have ended, in order.
        preempted: how often each job was preempted.
    """

    machines: list[Machine]
    fields: dict[str, Any] = field(default_factory=dict)
    now: float = NOW
    waiting: list[Work] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    preempted: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    _used: dict[tuple[str, int | None], float] = field(default_factory=lambda: defaultdict(float))
    _attempts: int = 0

    def step(self, seconds: float, *, lasts: float) -> Decision:
        """End the runs whose time is over, decide, and let some time pass.

        Args:
            seconds: how long until the next step.
            lasts: how long work runs that is placed now.
        """
        self._end_runs()
        decision = decide(self.state())
        for placement in decision.placements:
            self.waiting = [one for one in self.waiting if one.key != placement.work.key]
            self._attempts += 1
            attempt = running(
                placement.work.job,
                key=self._attempts,
                person=placement.work.person,
                project=placement.work.project,
                machine=placement.machine,
                slots=placement.work.slots,
                priority=placement.work.priority,
                started=self.now,
            )
            self.runs.append(Run(placement.work, attempt, self.now + lasts))
        for preemption in decision.preemptions:
            self._leave(preemption.running.key, preemption.work.job)
        self.now += seconds
        return decision

    def state(self) -> State:
        """Return the state now."""
        base = state(self.waiting, self.machines, running=[run.attempt for run in self.runs], **self.fields)
        used = {lane: seconds * shares.decay(0.0) for lane, seconds in self._used.items()}
        for run in self.runs:
            lane = ("default", run.attempt.person)
            used[lane] = used.get(lane, 0.0) + shares.use_while_running(
                run.attempt.slots, run.attempt.started, self.now
            )
        return replace(base, now=self.now, used=used)

    def _leave(self, key: int, job: int) -> None:
        for run in self.runs:
            if run.attempt.key == key:
                self.preempted[run.work.job] += 1
                run.attempt = replace(run.attempt, leaves_for=job)
                run.ends = self.now

    def _end_runs(self) -> None:
        for run in [run for run in self.runs if run.ends <= self.now]:
            self.runs.remove(run)
            if run.attempt.leaves_for is not None:
                self.waiting.append(run.work)
            else:
                self.done.append(run.work.job)
            lane = ("default", run.attempt.person)
            self._used[lane] += run.attempt.slots * (self.now - run.attempt.started)
