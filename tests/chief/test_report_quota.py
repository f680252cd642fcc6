"""A project's quotas for script reports: their share, who waits, and the project's disk."""

import asyncio
import time
from collections.abc import Callable

import pytest

from jobs.actions.runs import run_quotas
from jobs.actions.search import external_search
from jobs.errors import QuotaReached
from jobs.models import Attempt, Job, Project
from jobs.queries.people import quotas
from jobs.spec.external_search import ExternalSearch
from tests.people import People
from workers.chief import report_quota
from workers.chief.report_quota import ReportQuota
from workers.supervise.events import event_pace


@pytest.fixture
def search(people: People) -> Job:
    Project.objects.filter(pk=people.project.pk).update(max_events=1000)
    space = [{"name": "x", "kind": "float", "min": 0, "max": 1}]
    asked = ExternalSearch.model_validate({"space": space})
    return external_search.open_search(people.project, "mine", asked, by=people.member)[0]


def hold_trial(search: Job, script: str) -> Attempt:
    question = external_search.suggestion_request(search.pk)
    assert question is not None
    external_search.add_suggestion(search.pk, question, {"x": question.trial_count / 10})
    held = external_search.claim_trial(search.pk, script)
    assert isinstance(held, external_search.HeldTrial)
    return held.attempt


def test_a_project_shares_its_events_between_scripts_and_runs(people: People, search: Job) -> None:
    assert run_quotas.share_events_of_scripts(search.pk, 0) == 1000, "no script holds a trial yet"
    first, second = hold_trial(search, "a"), hold_trial(search, "b")
    assert run_quotas.share_events_of_scripts(search.pk, 800) == 1000
    assert quotas.quotas_out(people.project).events.used == 800
    assert {attempt.event_rate for attempt in Attempt.objects.filter(pk__in=(first.pk, second.pk))} == {400}
    # In place of a run of three slots, which a worker would claim.
    Attempt.objects.filter(pk=second.pk).update(slots=3, event_rate=990, job=_another(search))
    assert run_quotas.share_events_of_scripts(search.pk, 800) == 250


def _another(search: Job) -> Job:
    return Job.objects.create(project=search.project, kind="train")


class PretendDatabase:
    """Answers with a share, and with an error after the disk is full."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.is_full = False
        self.calls: list[str] = []

    async def __call__[T](self, function: Callable[[], T], /) -> T:
        name = getattr(getattr(function, "func", function), "__name__")  # noqa: B009  mypy knows no name
        self.calls.append(name)
        if self.is_full and name == "_require_within_disk":
            raise QuotaReached("Files and events of project yard use 9 bytes of its 8 bytes of disk.")
        return self.share  # type: ignore[return-value]


@pytest.fixture
def short_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pace, "BURST_SECONDS", 0.01)


@pytest.mark.usefixtures("short_burst")
async def test_a_script_with_many_calls_does_not_take_the_turns_of_another() -> None:
    database = PretendDatabase(1000.0)
    quota, order = ReportQuota(1, database), list[str]()
    await quota.follow_share()

    async def report(peer: str) -> None:
        async with quota.turn(peer, 100):
            order.append(peer)

    flood = [asyncio.create_task(report("flooding")) for _ in range(20)]
    while len(order) < 3:
        await asyncio.sleep(0.01)
    await report("other")
    assert len(order) < 8
    quota.lift()
    await asyncio.gather(*flood)
    assert sorted(order) == ["flooding"] * 20 + ["other"]
    assert database.calls == ["share_events_of_scripts", "warn_over_quota"], "one warning is enough"


@pytest.mark.usefixtures("short_burst")
async def test_reports_above_the_share_take_the_time_that_the_share_allows() -> None:
    quota = ReportQuota(1, PretendDatabase(1000.0))
    await quota.follow_share()
    began = time.monotonic()
    for _ in range(5):
        async with quota.turn("a", 100):
            pass
    assert time.monotonic() - began > 0.35, "four times 100 events have to wait"


async def test_a_script_that_reported_much_is_refused_until_its_project_has_room() -> None:
    database = PretendDatabase(1e12)
    quota = ReportQuota(1, database)
    database.is_full = True
    async with quota.turn("a", report_quota.CHECK_EVENTS - 1):
        pass
    for _ in range(2):
        with pytest.raises(QuotaReached):
            async with quota.turn("a", 1):
                pass
    database.is_full = False
    async with quota.turn("a", 1):
        pass
    async with quota.turn("a", 1):
        pass
    assert database.calls == ["_require_within_disk"] * 3
