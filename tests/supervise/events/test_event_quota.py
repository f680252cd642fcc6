"""A run above its project's event and disk quotas: it waits or ends, and loses no point."""

import time
from pathlib import Path

import pytest

from jobs import lease_clock
from jobs.errors import QuotaReached
from jobs.messages.events import CheckpointCommitted, Warned
from jobs.states import Desired, Outcome
from tests.supervise.conftest import Bench, until
from workers.supervise.attempt.runner_session import RunnerSession
from workers.supervise.events import event_pace, event_recorder, log_file, quota_watch

pytestmark = pytest.mark.timeout(120)
PAST_QUOTA = QuotaReached("Files and events of project yard use 9 bytes of its 8 bytes of disk.")


@pytest.fixture(autouse=True)
def short_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pace, "BURST_SECONDS", 0.01)


def codes(bench: Bench, attempt: int = 1) -> list[str]:
    return [event.code for event in bench.repository.events[attempt] if isinstance(event, Warned)]


async def test_a_run_above_its_share_waits_and_loses_no_point(bench: Bench) -> None:
    bench.repository.share = 20_000.0
    began = time.monotonic()
    # Each message has 10 points, so the run has to wait for 0.3 s.
    ending = await bench.run(["points", 0, 2000])
    assert time.monotonic() - began > 0.25
    assert ending is not None
    assert ending.outcome is Outcome.COMPLETED
    assert bench.repository.losses() == list(range(2000))
    assert codes(bench) == ["events_over_quota"]


async def test_a_run_below_its_share_is_not_warned(bench: Bench) -> None:
    bench.repository.share = 1e9
    await bench.run(["points", 0, 2000])
    assert codes(bench) == []


async def test_a_flooding_run_does_not_delay_another(bench: Bench) -> None:
    bench.repository.shares = {1: 300.0, 2: None}
    flooding = bench.start(["flood"])
    await until(lambda: bench.repository.losses(1))
    await bench.run(["points", 0, 500], attempt=2, root=2)
    assert bench.repository.endings[2].outcome is Outcome.COMPLETED
    assert bench.repository.losses(2) == list(range(500))
    assert not flooding.supervisor.ended
    flooding.supervisor.lease_renewed(lease_clock.now(), Desired.KILLED)
    await flooding.ended()


async def test_a_run_reports_its_rate_and_follows_its_share(bench: Bench) -> None:
    bench.repository.share = 1000.0
    run = bench.start(["flood"])
    await until(lambda: max(bench.repository.rates, default=0) > 100)
    bench.repository.share = None
    await until(lambda: len(bench.repository.losses()) > 20_000, 30)
    run.supervisor.lease_renewed(lease_clock.now(), Desired.KILLED)
    await run.ended()


@pytest.mark.parametrize("desired", [Desired.STOPPED, Desired.PAUSED])
async def test_a_run_that_waits_yields_at_once_with_all_points_that_it_has_sent(
    bench: Bench, desired: Desired
) -> None:
    bench.repository.share = 100.0
    run = bench.start(["points", 0, 1000], ["flood"])
    await until(lambda: "events_over_quota" in codes(bench) if bench.repository.events.get(1) else False)
    run.supervisor.lease_renewed(lease_clock.now(), desired)
    await run.ended()
    ending = bench.repository.endings[1]
    assert (ending.outcome.value, ending.code) == (desired.value, "")
    seen = bench.repository.losses()
    assert seen[:1000] == list(range(1000))
    assert sorted(seen[1000:]) == list(range(len(seen) - 1000))


async def test_a_run_that_waits_for_its_quota_does_not_count_as_hung(bench: Bench) -> None:
    bench.with_timing(silence=1.5, silence_factor=0.1)
    bench.repository.share = 10.0
    ending = await bench.run(["points", 0, 20])  # it waits for three seconds after each of two messages
    assert ending is not None
    assert (ending.outcome, ending.code) == (Outcome.COMPLETED, "")


async def test_the_next_run_of_a_runner_does_not_wait_for_the_events_of_the_one_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause_after_the_result(session: RunnerSession) -> float:
        return 0.0 if session._final_event is None else 1000.0

    monkeypatch.setattr(RunnerSession, "_pause", pause_after_the_result)
    for attempt in (1, 2):
        await bench.run(["points", 0, 10], attempt=attempt)
        assert bench.repository.losses(attempt) == list(range(10))
    assert len(bench.pids) == 1


async def test_lines_of_output_above_the_quota_are_left_out_with_their_number(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "MAX_LINES_PER_ATTEMPT", 10**6)
    bench.with_timing(watch=3600.0)  # all lines are read at the end
    bench.repository.share = 1000.0
    await bench.run(["print", "\n".join(f"line {number}" for number in range(5000))])
    lines = bench.repository.lines()
    printed = [line.line for line in lines if line.source == "stdout"]
    warnings = [line.line for line in lines if "lines left out" in line.line]
    assert len(warnings) == 1
    assert printed[-1] == "line 4999"
    assert int(warnings[0].split()[1].replace(",", "")) == 5000 - len(printed) > 4000


async def test_a_checkpoint_above_the_disk_quota_ends_the_run_with_all_its_events(bench: Bench) -> None:
    bench.repository.over_quota = {1: PAST_QUOTA}
    await bench.run(["points", 0, 100], ["checkpoint", 3], ["points", 100, 200], ["hang"])
    ending = bench.repository.endings[1]
    assert (ending.outcome, ending.code) == (Outcome.FAILED, "quota_reached")
    assert "of its 8 bytes" in ending.message
    assert any(isinstance(event, CheckpointCommitted) for event in bench.repository.events[1])
    assert bench.repository.losses()[:100] == list(range(100))
    await bench.run(["checkpoint", 3], attempt=2, root=2)
    assert bench.repository.endings[2].outcome is Outcome.COMPLETED


async def test_the_disk_quota_is_also_checked_for_many_events_but_not_for_few(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.repository.over_quota = {1: PAST_QUOTA, 2: PAST_QUOTA}
    await bench.run(["points", 0, 500])
    assert bench.repository.endings[1].outcome is Outcome.COMPLETED
    monkeypatch.setattr(event_recorder, "CHECK_BYTES", 1000)
    await bench.run(["flood"], attempt=2)
    assert bench.repository.endings[2].code == "quota_reached"


async def test_a_run_that_fills_its_own_folder_ends_and_another_continues(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_watch, "CHECK_BYTES", 1000)
    bench.repository.over_quota, bench.repository.room = {1: PAST_QUOTA}, 8000
    other = bench.start(["fill", "small", 500], ["hold"], attempt=2, root=2)
    # Events are recorded in order, so the artifact is in the store once the checkpoint is recorded.
    recorded = (["artifact", "report.txt", "x" * 700], ["checkpoint", 1], ["await_recorded", 1])
    await bench.run(*recorded, ["fill", "large", 9000], ["hold"])
    assert bench.repository.endings[1].code == "quota_reached"
    assert 9000 <= max(bench.repository.besides) < 9700, "a file that is in the store counts there"
    assert not other.supervisor.ended
    other.supervisor.lease_renewed(lease_clock.now(), Desired.STOPPED)
    await other.ended()


async def test_the_size_of_a_checkpoint_is_measured(bench: Bench, tmp_path: Path) -> None:
    await bench.run(["large_checkpoint", 3, 5000])
    (event,) = [event for event in bench.repository.events[1] if isinstance(event, CheckpointCommitted)]
    assert event.bytes == 5000
