"""People share the slots of a pool: by use that halves each day, and by limits."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions import totals
from jobs.actions.people import person_limits
from jobs.actions.runs import attempt_end, pipeline, schedule, submit
from jobs.errors import BadInput, Forbidden
from jobs.models import Attempt, AuditEvent, Job, Membership, Share, User
from jobs.queries.runs import queue, shares
from jobs.queries.search import waiting
from jobs.states import Outcome
from tests.jobs.runs.test_schedule import waits
from tests.jobs.yard import SEARCH, PretendWorker, Yard, suggest_from_grid


@pytest.fixture
def ben(installation: Yard) -> User:
    person = User.objects.create(username="ben")
    Membership.objects.create(project=installation.project, user=person, role="member")
    return person


def submit_by(person: User, installation: Yard, **parts: object) -> Job:
    return submit.submit(installation.revision(**parts), by=person)


def jobs_on(worker: PretendWorker) -> list[int]:
    return [attempt.job_id for attempt in worker.claim_all()]


def run_for(job: Job, worker: PretendWorker, **time: float) -> None:
    """Let a job have run for some time until now."""
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    assert attempt.job_id == job.pk
    Attempt.objects.filter(pk=attempt.pk).update(claimed=timezone.now() - timedelta(**time))
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})


def test_a_persons_search_does_not_go_before_everyones_next_job(installation: Yard, ben: User) -> None:
    search = installation.submit(search=SEARCH)
    worker = PretendWorker(slots=2)
    pipeline.advance_all()
    suggest_from_grid(search)
    other = submit_by(ben, installation)
    schedule.place_jobs()
    assert sorted(jobs_on(worker)) == [search.pk, other.pk]


@pytest.mark.parametrize("is_counted", [False, True])
def test_whoever_has_used_less_is_next_also_after_a_restart(
    installation: Yard, ben: User, is_counted: bool
) -> None:
    worker = PretendWorker(slots=1)
    run_for(installation.submit(), worker, hours=2)
    if is_counted:
        totals.count_ended_attempts()
    older, younger = installation.submit(), submit_by(ben, installation)
    schedule.place_jobs()
    assert jobs_on(worker) == [younger.pk]
    assert queue.queue_position(older) == 1


def test_the_use_of_an_ended_attempt_is_counted_once_and_halves_each_day(
    installation: Yard,
) -> None:
    worker = PretendWorker(slots=2)
    run_for(installation.submit(resources={"slots": 2}), worker, hours=1)
    before = shares.read_use([], timezone.now())["default", installation.owner.pk]
    totals.count_ended_attempts()
    totals.count_ended_attempts()
    share = Share.objects.get(person=installation.owner, pool="default")
    assert share.slot_seconds == pytest.approx(2 * 3600, rel=0.03)
    assert before == pytest.approx(share.slot_seconds, rel=0.001)
    tomorrow = timezone.now() + timedelta(days=1)
    assert shares.read_use([], tomorrow)["default", installation.owner.pk] == pytest.approx(
        share.slot_seconds / 2, rel=0.001
    )


def test_a_person_at_their_limit_waits_with_that_reason(installation: Yard, ben: User) -> None:
    admin = User.objects.create(username="root", is_superuser=True)
    person_limits.set_max_slots(installation.owner, 1, by=admin)
    first, second, other = installation.submit(), installation.submit(), submit_by(ben, installation)
    worker = PretendWorker(slots=4)
    assert waits(second) == "olga uses 1 of the 1 slot that they may use at once."
    assert sorted(jobs_on(worker)) == [first.pk, other.pk]
    assert AuditEvent.objects.get(action="person.max_slots").detail == {"name": "olga", "slots": 1}


def test_trials_of_a_running_search_show_the_limit_of_their_person(installation: Yard) -> None:
    User.objects.filter(pk=installation.owner.pk).update(max_slots=1)
    search = installation.submit(search=SEARCH)
    worker = PretendWorker(slots=4)
    pipeline.advance_all()
    suggest_from_grid(search)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    worker.run_trial(attempt, attempt.trials.get())
    schedule.place_jobs()
    search.refresh_from_db()
    reasons = waiting.waiting_reasons(search)
    assert "olga uses 1 of the 1 slot that they may use at once." in reasons.values()
    assert "A slot is free. The trial starts in a moment." not in reasons.values()


def test_only_administrators_limit_people_and_to_one_slot_at_least(installation: Yard, ben: User) -> None:
    with pytest.raises(Forbidden):
        person_limits.set_max_slots(ben, 1, by=installation.owner)
    admin = User.objects.create(username="root", is_superuser=True)
    with pytest.raises(BadInput) as refused:
        person_limits.set_max_slots(ben, 0, by=admin)
    assert refused.value.problems[0].pointer == "/max_slots"


def test_the_queue_is_listed_in_the_order_in_which_it_is_placed(installation: Yard, ben: User) -> None:
    mine = [installation.submit() for _ in range(3)]
    his = submit_by(ben, installation)
    urgent = installation.submit(resources={"priority": 90})
    listed = [entry.job.pk for entry in queue.waiting_jobs(installation.owner) if entry.job]
    assert listed == [urgent.pk, his.pk, mine[0].pk, mine[1].pk, mine[2].pk]
    worker = PretendWorker(slots=3)
    schedule.place_jobs()
    assert sorted(jobs_on(worker)) == sorted([urgent.pk, his.pk, mine[0].pk])


def test_the_shares_name_only_people_whom_the_reader_may_see(installation: Yard, ben: User) -> None:
    stranger = User.objects.create(username="stranger")
    run_for(submit_by(ben, installation), PretendWorker(), hours=1)
    for reader, name in ((installation.owner, ben), (stranger, None)):
        (pool,) = shares.shares_of_pools(reader)
        assert [(share.person, round(share.hours)) for share in pool.people] == [(name, 1)]
