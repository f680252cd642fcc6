"""How long trials ran: the time of their attempts, without what lies between them."""

import datetime as dt

import pytest
from django.utils import timezone

from jobs.models import Attempt, Job, Trial
from jobs.queries.search import templates_tried, trials
from jobs.queries.search.trial_columns import read_columns
from tests.factories import SEARCH, make_attempt, make_experiment, make_job, make_trials, make_worker
from tests.markup import text_of
from tests.people import People, browser_of
from tests.present import present

BEGIN = timezone.now() - dt.timedelta(hours=2)


def at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner, spec=SEARCH)
    return make_job(experiment=experiment, by=people.owner, state="running")


@pytest.fixture
def trial(search: Job) -> Trial:
    """A trial that began at 0 s and ended at 100 s."""
    (row,) = make_trials(search, 1)
    return ended(row, 0, 100)


def ended(row: Trial, begin: float, end: float) -> Trial:
    row.started, row.finished = at(begin), at(end)
    row.save(update_fields=["started", "finished"])
    return row


def attempts(row: Trial, *spans: tuple[float, float | None]) -> None:
    """Make attempts that held a trial; None: it still runs others."""
    worker = make_worker()
    for claimed, end in spans:
        attempt = make_attempt(row.job, worker, trial=row)
        over = at(end) if end is not None else None
        Attempt.objects.filter(pk=attempt.pk).update(claimed=at(claimed), ended=over)


def seconds_of(row: Trial) -> float | None:
    """Return the seconds that REST, the table and the page's facts agree on."""
    seconds = trials.trial_out(row, best=None).seconds
    assert read_columns(row.job)["seconds"] == [seconds]
    return seconds


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 100),
        ([(-1, 100.5)], 100),
        ([(-1, None)], 100),
        ([(-1, 20), (70, 101)], 50),
        ([(-1, 20), (70, 80), (90, None)], 40),
        ([(-50, -10), (-1, 101)], 100),
        ([(-1, 30), (25, 101)], 100),
        ([(-1, 20)], 20),
    ],
    ids=[
        "a script outside, which has no attempts",
        "one attempt",
        "an attempt that still trains other trials",
        "a pause",
        "two pauses",
        "an attempt that ended before it began the trial",
        "attempts that overlap",
        "stopped while it was paused",
    ],
)
def test_a_trial_took_the_time_of_its_attempts(
    trial: Trial, spans: list[tuple[float, float | None]], seconds: float
) -> None:
    attempts(trial, *spans)
    assert seconds_of(trial) == seconds


def test_a_trial_that_has_not_ended_has_no_time(trial: Trial) -> None:
    attempts(trial, (-1, 20), (70, None))
    trial.finished = None
    trial.save(update_fields=["finished"])
    assert seconds_of(trial) is None


def test_the_pause_of_a_trial_is_not_that_of_another(search: Job) -> None:
    first, second = (ended(row, 0, 100) for row in make_trials(search, 2))
    attempts(first, (-1, 20), (70, 101))
    attempts(second, (-1, 101))
    assert read_columns(search)["seconds"] == [50, 100]
    browser = browser_of(present(search.created_by))
    items = browser.get(f"/api/v1/jobs/{search.pk}/trials").json()["items"]
    assert [item["seconds"] for item in items] == [50, 100]


def test_the_page_of_a_trial_names_its_time_without_the_pause(trial: Trial, people: People) -> None:
    attempts(trial, (-1, 20), (70, 101))
    page = browser_of(people.owner).get(f"/jobs/{trial.job_id}/trials/1")
    assert "Took 50 s" in text_of(page)


def test_a_template_took_the_time_of_its_trials_attempts(search: Job, people: People) -> None:
    space = [{"name": "template", "kind": "choice", "values": ["mlp", "linear"]}]
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": space}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    several = make_job(experiment=experiment, by=people.owner, state="running")
    (row,) = make_trials(several, 1)
    ended(row, 0, 100)
    Trial.objects.filter(pk=row.pk).update(values={"template": "linear"})
    attempts(row, (-1, 20), (70, 101))
    seconds = {result.template: result.seconds for result in templates_tried.template_results(several)}
    assert seconds == {"linear": 50, "mlp": 0}
