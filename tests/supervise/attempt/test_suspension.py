"""Runs whose lease could not be renewed: they are suspended, and continue or end afterwards."""

import time

import psutil
import pytest

from jobs import lease_clock
from jobs.messages.events import Warned
from jobs.states import Desired, Outcome
from tests.supervise.conftest import Bench, Run, until
from workers.node.held_attempts import HeldAttempts
from workers.supervise.attempt_end import AttemptEnd

STEPS = 100_000
SLOWLY = ["slowly", 0, STEPS, 0.02]


def let_lease_expire(run: Run) -> None:
    run.supervisor.lease.valid_until = lease_clock.now() - 1
    run.supervisor.lease.check(lease_clock.now())


def renew(run: Run) -> None:
    run.supervisor.lease_renewed(lease_clock.now(), Desired.RUNNING)
    run.supervisor.lease.check(lease_clock.now())


def is_stopped(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or only waits for a parent that takes its status."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_a_run_whose_lease_expires_is_suspended_and_continues_after_a_renewal(bench: Bench) -> None:
    run = bench.start(SLOWLY)
    await until(lambda: bench.repository.losses())
    (pid,) = bench.pids
    let_lease_expire(run)
    await until(lambda: is_stopped(pid))
    await until(lambda: bench.repository.losses() == bench.repository.losses())
    count = len(bench.repository.losses())
    renew(run)
    await until(lambda: len(bench.repository.losses()) > count)
    assert bench.pids == [pid]
    assert not run.supervisor.ended
    (warned,) = [event for event in bench.repository.events[1] if isinstance(event, Warned)]
    assert (warned.code, "could not reach the database" in warned.message) == ("suspended", True)
    losses = bench.repository.losses()
    assert losses == list(range(len(losses))), "no point is missing, and none is there twice"
    run.supervisor.end(AttemptEnd(Outcome.KILLED))
    await run.ended()


async def test_programs_that_the_runner_has_started_are_suspended_too(bench: Bench) -> None:
    run = bench.start(["multiply", 3])
    await until(lambda: bench.pids and len(psutil.Process(bench.pids[0]).children()) == 3)
    (pid,) = bench.pids
    processes = [pid, *(child.pid for child in psutil.Process(pid).children())]
    let_lease_expire(run)
    await until(lambda: all(map(is_stopped, processes)))
    renew(run)
    await until(lambda: not any(map(is_stopped, processes)))
    run.supervisor.end(AttemptEnd(Outcome.KILLED))
    await run.ended()
    await until(lambda: all(map(has_ended, processes)))


async def test_a_suspended_run_that_is_no_longer_held_is_killed_without_a_further_step(bench: Bench) -> None:
    run = bench.start(SLOWLY)
    await until(lambda: bench.repository.losses())
    (pid,) = bench.pids
    let_lease_expire(run)
    await until(lambda: is_stopped(pid))
    run.supervisor.end(AttemptEnd.stale())
    await run.ended()
    assert bench.pids == []
    assert not psutil.pid_exists(pid)


async def test_a_run_does_not_begin_while_its_lease_may_have_expired(bench: Bench) -> None:
    run = bench.start(["points", 0, 10])
    let_lease_expire(run)
    await until(lambda: bench.pids)
    await until(lambda: is_stopped(bench.pids[0]))
    assert 1 not in bench.repository.events
    renew(run)
    await run.ended()
    assert bench.repository.endings[1].outcome is Outcome.COMPLETED


async def test_the_time_of_a_suspension_is_no_stall(bench: Bench) -> None:
    bench.with_timing(silence=0.3, silence_factor=1.0, epoch_factor=0.0)
    run = bench.start(SLOWLY)
    await until(lambda: len(bench.repository.losses()) > 5)
    (pid,) = bench.pids
    let_lease_expire(run)
    await until(lambda: is_stopped(pid))
    suspended = time.monotonic()
    await until(lambda: time.monotonic() - suspended > 0.6)
    assert not run.supervisor.ended
    renew(run)
    count = len(bench.repository.losses())
    await until(lambda: len(bench.repository.losses()) > count)
    run.supervisor.end(AttemptEnd(Outcome.KILLED))
    await run.ended()


async def test_a_run_that_cannot_be_suspended_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = bench.start(SLOWLY)
    await until(lambda: bench.repository.losses())
    (runner,) = bench.node.pool._busy
    monkeypatch.setattr(runner, "suspend", lambda: False)  # as if the signal were not permitted
    let_lease_expire(run)
    await run.ended()
    assert bench.repository.endings[1].code == "lease_lost"


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="the platform has no such clock")
async def test_a_run_is_suspended_when_its_machine_wakes_up_after_its_lease(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.repository.scripts[1] = [SLOWLY]
    attempts = HeldAttempts(bench.node, disk_shortage=lambda: None)
    await attempts.claim_assigned()
    await until(lambda: bench.repository.losses())
    (pid,) = bench.pids
    attempts.check_leases()
    assert not is_stopped(pid)
    # As during a sleep of the machine: only this clock runs.
    clock_gettime = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: clock_gettime(clock) + bench.node.timing.lease)
    attempts.check_leases()
    await until(lambda: is_stopped(pid))
    await attempts.renew()
    attempts.check_leases()
    await until(lambda: not is_stopped(pid))
    attempts.end_all(AttemptEnd(Outcome.KILLED))
    assert await attempts.wait_until_empty(30)
