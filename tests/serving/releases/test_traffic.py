"""Request counts until the dashboard has them: lost answers, outages and restarts."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from jobs.messages.release import ReplicaReport
from jobs.messages.traffic import TrafficReport
from workers.serving.health import Health
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.dashboard import Dashboard, DashboardUnavailable, ReportRefused
from workers.serving.releases.endpoint import Endpoint
from workers.serving.releases.polling import Reporter
from workers.serving.traffic import KEPT_INTERVALS, Traffic, next_run


class _Dashboard:
    """Adds each report once, as the real one does; `answers` are the next reports' outcomes."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = {}
        self.answers: list[Exception | None] = []
        self.received: list[ReplicaReport] = []
        self._newest: dict[str, tuple[int, int]] = {}

    async def report(self, report: ReplicaReport) -> None:
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, ReportRefused):
            raise answer
        self.received.append(report)
        self._add(report.model, report.traffic)
        if answer is not None:
            raise answer

    def _add(self, model: str, traffic: TrafficReport | None) -> None:
        if traffic is None or (traffic.run, traffic.sequence) <= self._newest.get(model, (0, 0)):
            return
        self._newest[model] = traffic.run, traffic.sequence
        counts = (version.counts for interval in traffic.intervals for version in interval.versions)
        self.counted[model] = self.counted.get(model, 0) + sum(
            sum(interval_counts.latency.values()) for interval_counts in counts
        )


class _Catalog:
    def __init__(self, *models: str) -> None:
        self.endpoints = {
            model: Endpoint(model, load=lambda *_: pytest.fail(), changed=lambda: None, drain_seconds=1)
            for model in models
        }


def sender(traffic: Traffic, dashboard: _Dashboard) -> Reporter:
    return Reporter(cast(Dashboard, dashboard), "here", 1, traffic, Health("never", lambda: None))


def ask(traffic: Traffic, model: str, times: int) -> None:
    for _ in range(times):
        traffic.tally(model, 1).count_request(200, 0.001)


def close(traffic: Traffic, at: float) -> None:
    traffic._since = at - 5
    traffic.close_interval(at)


async def after_a_lost_answer() -> tuple[Reporter, _Dashboard, Catalog]:
    """Count three requests, whose report is not confirmed, then four others."""
    traffic, dashboard, catalog = Traffic(1), _Dashboard(), cast(Catalog, _Catalog("digits"))
    reporter = sender(traffic, dashboard)
    ask(traffic, "digits", 3)
    close(traffic, 1005)
    dashboard.answers = [DashboardUnavailable("the answer was lost")]
    await reporter.send_reports(catalog)
    ask(traffic, "digits", 4)
    close(traffic, 1010)
    return reporter, dashboard, catalog


async def test_a_report_whose_answer_is_lost_is_sent_again_and_counted_once() -> None:
    reporter, dashboard, catalog = await after_a_lost_answer()
    for _ in range(3):
        await reporter.send_reports(catalog)
    assert dashboard.counted == {"digits": 7}
    assert [report.traffic.sequence for report in dashboard.received if report.traffic] == [1, 1, 2]


async def test_at_the_end_the_counts_behind_an_unconfirmed_report_are_sent_too() -> None:
    reporter, dashboard, catalog = await after_a_lost_answer()
    await reporter.send_last(catalog)
    assert dashboard.counted == {"digits": 7}


async def test_nothing_is_lost_while_the_dashboard_is_down_for_an_hour() -> None:
    traffic, dashboard, catalog = Traffic(1), _Dashboard(), cast(Catalog, _Catalog("digits"))
    for number in range(KEPT_INTERVALS):
        ask(traffic, "digits", 1)
        close(traffic, 10_005 + 10 * number)
    reporter = sender(traffic, dashboard)
    while reporter._pending.is_set() or not dashboard.received:
        reporter._pending.clear()
        await reporter.send_reports(catalog)
    assert dashboard.counted == {"digits": KEPT_INTERVALS}
    ask(traffic, "digits", 1)
    for number in range(KEPT_INTERVALS + 5):
        ask(traffic, "digits", 1)
        close(traffic, 20_005 + 10 * number)
    assert len(traffic._unconfirmed["digits"]._closed) == KEPT_INTERVALS, "the memory is bounded"


async def test_a_refused_report_does_not_hold_back_those_of_other_models() -> None:
    traffic, dashboard = Traffic(1), _Dashboard()
    reporter, catalog = sender(traffic, dashboard), cast(Catalog, _Catalog("deleted", "digits"))
    ask(traffic, "deleted", 2)
    ask(traffic, "digits", 3)
    close(traffic, 1005)
    dashboard.answers = [ReportRefused("404")]
    await reporter.send_reports(catalog)
    assert dashboard.counted == {"digits": 3}
    assert traffic.report("deleted") is None


def test_counts_belong_to_the_interval_with_most_of_their_time() -> None:
    traffic = Traffic(1)
    for at in (1005.01, 1010.02, 1014.99, 1020.0):
        ask(traffic, "digits", 1)
        close(traffic, at)
    report = traffic.report("digits")
    assert report is not None
    assert [interval.start for interval in report.intervals] == [1000, 1010]
    assert [sum(interval.versions[0].counts.latency.values()) for interval in report.intervals] == [2, 2]


def test_each_start_has_a_higher_run_also_if_the_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "run"
    runs = [next_run(path) for _ in range(3)]
    assert runs == sorted(set(runs))
    path.write_text("")
    assert next_run(path) >= runs[0]
    path.write_text("99999999999")
    assert next_run(path) == 100_000_000_000


async def test_intervals_are_closed_while_a_report_waits_for_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workers.serving.releases.polling.HEARTBEAT_SECONDS", 0.01)
    traffic = Traffic(1)
    reporter = sender(traffic, _Dashboard())
    ask(traffic, "digits", 1)
    task = asyncio.create_task(reporter.close_intervals())
    while traffic.report("digits") is None:
        await asyncio.sleep(0)
    task.cancel()
    assert reporter._pending.is_set()
