"""Leases in outages of the database: two workers never run one attempt, and what runs is not ended.

The clocks are simulated: that of the database, and one for each worker, which differs in offset and speed.
The rows, the renewals, the reaper and the placement are the real ones.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import clock
from jobs.actions.runs import attempt_end, attempts, reachability, schedule, workers
from jobs.models import Attempt, Reachability, Worker
from tests.jobs.yard import Yard, make_yard
from tests.present import present
from workers.supervise.attempt.held_lease import HeldLease
from workers.supervise.timing import Timing

pytestmark = pytest.mark.django_db

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
STEP = 0.5
TIMING = Timing()
ACTORS = ("a", "b", "scheduler")


@dataclass
class Holder:
    """A worker with its own clock, which polls, renews and checks its leases as a node does."""

    name: str
    offset: float
    speed: float
    row: Worker
    silent: bool
    """Whether calls in an outage time out; otherwise they are refused at once."""
    lease: HeldLease | None = None
    attempt: int = 0
    next_call: float = 0.0
    failures: int = 0
    killed: bool = False

    def clock(self, now: float) -> float:
        return self.offset + now * self.speed

    @property
    def runs(self) -> bool:
        return self.lease is not None and not self.lease.suspended and not self.killed

    def act(self, now: float, *, connected: bool, delay: float) -> None:
        """Make the calls that are due. Each was requested `delay` ago and takes effect now."""
        if self.killed:
            return
        if self.lease is not None:
            self.lease.check(self.clock(now))
        if now < self.next_call:
            return
        if not connected:
            pause = min(TIMING.retry_limit, TIMING.retry_first * 2.0 ** min(self.failures, 30))
            self.failures += 1
            self.next_call = now + pause + (TIMING.renew_patience if self.silent else 0.0)
            return
        self.failures, self.next_call = 0, now + (TIMING.poll if self.lease is None else TIMING.renew)
        requested_at = self.clock(now - delay)
        if self.lease is None:
            self._claim(requested_at)
        elif self.attempt in attempts.renew(self.row.pk, [self.attempt]):
            self.lease.renewed(requested_at)
            self.lease.check(self.clock(now))
        else:
            self.lease = None
        workers.heartbeat(self.row.pk, devices=[], info={})

    def _claim(self, requested_at: float) -> None:
        for row in attempts.assigned_to(self.row.pk):
            if attempts.claim(row.pk, worker_id=self.row.pk) is not None:
                self.lease, self.attempt = HeldLease(requested_at, TIMING.lease_validity), row.pk
                return


@dataclass
class World:
    """Two workers and a scheduler around one database and one job."""

    yard: Yard
    monkeypatch: pytest.MonkeyPatch
    silent: bool = False
    drift: float = 1.0
    delay: float = 0.0
    now: float = 0.0
    holders: dict[str, Holder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(clock, "now", lambda: EPOCH + timedelta(seconds=self.now))
        Reachability.objects.all().delete()
        self.job = self.yard.submit(after={})
        for name, offset, speed in (("a", 1000.0, self.drift), ("b", -50.0, 2.0 - self.drift)):
            row = workers.register(name=name, host=name, pid=1, pool="default", slots=1, devices=[], info={})
            self.holders[name] = Holder(name, offset, speed, row, self.silent)

    def run(self, seconds: float, cut_off: frozenset[str] = frozenset()) -> None:
        """Let time pass while these parts cannot reach the database."""
        end = self.now + seconds
        while self.now < end:
            self.now += STEP
            for name, holder in self.holders.items():
                holder.act(self.now, connected=name not in cut_off, delay=self.delay)
            if "scheduler" not in cut_off and self.now % 2.0 == 0:
                attempt_end.reap()
                schedule.place_jobs()
            for holder in self.holders.values():
                if holder.lease is not None:
                    holder.lease.check(holder.clock(self.now))
            assert self.running <= 1, f"two workers run the job at {self.now}"

    @property
    def running(self) -> int:
        return sum(holder.runs for holder in self.holders.values())

    @property
    def holder(self) -> Holder:
        (holder,) = (holder for holder in self.holders.values() if holder.lease is not None)
        return holder


@pytest.fixture
def yard() -> Yard:
    return make_yard()


CUT_OFF = st.frozensets(st.sampled_from(ACTORS))
SECONDS = st.integers(1, 40).map(float)
WORLD = {
    "silent": st.booleans(),
    "drift": st.floats(0.98, 1.02),
    "delay": st.sampled_from((0.0, 0.5, 2.5)),
}
EXAMPLES = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@EXAMPLES
@given(outages=st.lists(st.tuples(SECONDS, CUT_OFF), min_size=2, max_size=8), **WORLD)
def test_two_workers_never_run_one_job_whoever_is_cut_off(
    yard: Yard, outages: list[tuple[float, frozenset[str]]], silent: bool, drift: float, delay: float
) -> None:
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        world = World(yard, patch, silent, drift, delay)
        world.run(30.0)
        for seconds, cut_off in outages:
            world.run(seconds, cut_off)
        world.run(60.0)
        assert world.running == 1, "when all are back, the job runs"
        transaction.set_rollback(True)


@EXAMPLES
@given(
    outages=st.lists(st.floats(1.0, 300.0), min_size=1, max_size=3),
    early=st.lists(st.floats(0.0, 3.0), min_size=3, max_size=3),
    **WORLD,
)
def test_an_outage_for_all_ends_nothing(
    yard: Yard, outages: list[float], early: list[float], silent: bool, drift: float, delay: float
) -> None:
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        world = World(yard, patch, silent, drift, delay)
        world.run(30.0)
        holder = world.holder
        for seconds, first in zip(outages, early, strict=False):
            world.run(first, frozenset({"a"}))  # the parts do not notice it at the same time
            world.run(seconds, frozenset(ACTORS))
            world.run(25.0)
            assert world.running == 1
        assert world.holder is holder
        (attempt,) = Attempt.objects.all()
        assert (attempt.state, attempt.error) == ("running", None)
        assert not Worker.objects.exclude(state="up").exists()
        transaction.set_rollback(True)


@pytest.mark.parametrize("outage", [0.0, 60.0])
def test_the_work_of_a_dead_worker_is_placed_again_soon_after_an_outage_too(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, outage: float
) -> None:
    world = World(yard, monkeypatch)
    world.run(30.0)
    world.holder.killed = True
    world.run(outage, frozenset(ACTORS))
    world.run(22.0)
    assert world.running == 1
    ended = Attempt.objects.get(state="ended")
    assert present(ended.error)["code"] == "lease_expired"


def test_a_scheduler_that_was_started_during_the_outage_knows_of_it_too(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(yard, monkeypatch)
    world.run(30.0)
    holder = world.holder
    world.run(120.0, frozenset(ACTORS))
    # The scheduler is the first that reaches the database again.
    world.run(10.0, frozenset({"a", "b"}))
    world.run(10.0)
    assert world.holder is holder
    assert Attempt.objects.count() == 1


def test_slow_passes_of_the_scheduler_are_no_break_while_its_thread_records(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(yard, monkeypatch)
    for _ in range(10):
        world.now += 2.0
        reachability.record()
    row = Reachability.objects.get()
    assert (row.since, row.seen) == (EPOCH + timedelta(seconds=2), EPOCH + timedelta(seconds=20))
    world.now += 5.5
    reachability.record()
    assert Reachability.objects.get().since == EPOCH + timedelta(seconds=25.5)
