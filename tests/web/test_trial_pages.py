"""A trial's page: its values, its state, its checkpoints and its buttons."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs import program
from jobs.models import Checkpoint, Job
from tests.factories import (
    SEARCH,
    make_attempt,
    make_dataset,
    make_experiment,
    make_job,
    make_trials,
    make_worker,
)
from tests.markup import text_of
from tests.people import People
from tests.present import present


def test_a_trial_is_shown_beside_the_best(browser: Client, search: Job) -> None:
    page = browser.get(f"/jobs/{search.pk}/trials/1")
    assert [tuple(row) for row in page.context["rows"]] == [("units", 16, 32)]


def test_a_trial_is_shown_before_any_trial_has_a_score(browser: Client, search: Job) -> None:
    search.trials.update(state="running", score=None, finished=None)
    page = browser.get(f"/jobs/{search.pk}/trials/1")
    assert (page.status_code, page.context["best"]) == (200, None)
    assert "inactive" not in page.content.decode(), "no best trial is shown"


def test_the_values_of_a_trial_are_queued_again(browser: Client, search: Job) -> None:
    answer = browser.post(f"/jobs/{search.pk}/trials/2/again")
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{search.pk}/trials/3")
    again = search.trials.get(number=3)
    assert (again.values, again.source, again.state) == ({"units": 32}, "hand", "queued")


def test_a_trial_is_retrained_as_an_experiment_of_its_own(
    browser: Client, search: Job, people: People
) -> None:
    make_dataset("digits", by=people.owner)
    present(search.experiment).revisions.update(
        spec_json=SEARCH | {"after": {"retrain": {"top": 4}, "ensemble": {}, "quantize": {}}}
    )
    answer = browser.post(f"/jobs/{search.pk}/trials/2/train")
    job = Job.objects.latest("pk")
    assert (answer.status_code, answer["Location"], job.kind) == (303, f"/jobs/{job.pk}", "train")
    assert job.experiment_id != search.experiment_id
    assert present(job.revision).spec.search is None
    assert present(job.revision).spec.model.args["units"] == 32
    after = present(job.revision).spec.after
    assert (present(after.retrain).top, after.ensemble, after.quantize) == (1, None, None)


def test_a_queued_trial_shows_why_it_waits(browser: Client, search: Job) -> None:
    browser.post(f"/jobs/{search.pk}/trials/1/again")
    for path in (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/3"):
        assert f"start one with: {program.command_line('worker --pool default')}" in text_of(
            browser.get(path)
        )
    make_attempt(search, make_worker(slots=1), trial=search.trials.get(number=1))
    assert "Needed: 1 of the 1 slot of pool default; 0 free now." in browser.get(path).content.decode()


def test_an_execution_that_a_stopped_trial_did_not_start_is_not_queued(browser: Client, search: Job) -> None:
    trial = search.trials.order_by("number").first()
    assert trial is not None
    trial.executions.update(state="queued")
    search.trials.filter(pk=trial.pk).update(state="stopped", finished=timezone.now())
    page = text_of(browser.get(f"/jobs/{search.pk}/trials/{trial.number}"))
    assert "not started" in page
    search.trials.filter(pk=trial.pk).update(state="queued", finished=None)
    assert "not started" not in text_of(browser.get(f"/jobs/{search.pk}/trials/{trial.number}"))


def test_a_trial_shows_its_checkpoints_with_their_execution_and_its_attempts(
    browser: Client, search: Job
) -> None:
    trial = search.trials.get(number=1)
    make_attempt(search, make_worker("box"), trial=trial)
    Checkpoint.objects.create(
        job=search, trial=trial, execution=2, attempt=1, step=7, epoch=3, folder="x", bytes=5
    )
    page = browser.get(f"/jobs/{search.pk}/trials/1")
    assert [(c.execution, c.epoch) for c in page.context["checkpoints"]] == [(2, 3)]
    assert [a.worker.name for a in page.context["attempts"]] == ["box"]
    assert ("val_loss", pytest.approx(0.09), pytest.approx(0.08)) in page.context["metrics"]


def test_a_trial_shows_its_checkpoints_and_counts_the_removed_ones(browser: Client, search: Job) -> None:
    about = {"job": search, "trial": search.trials.get(number=1), "attempt": 1, "epoch": 1, "bytes": 5}
    first = Checkpoint.objects.create(**about, execution=1, step=1, folder="1")
    gone = {**about, "execution": 2, "removed": timezone.now()}
    Checkpoint.objects.bulk_create(Checkpoint(**gone, step=n, folder=f"2/{n}") for n in range(200))
    page = browser.get(f"/jobs/{search.pk}/trials/1")
    checkpoints = [(c.execution, c.step) for c in page.context["checkpoints"]]
    assert checkpoints == [(1, first.step)]
    assert "200 removed" in page.content.decode()


def test_a_trial_shows_its_rung_and_every_decision_with_its_numbers(browser: Client, people: People) -> None:
    spec = {**SEARCH, "fit": {**SEARCH["fit"], "epochs": 9}}
    spec["search"] = {**SEARCH["search"], "algorithm": "hyperband", "max_trials": 100}
    job = make_job(
        experiment=make_experiment(project=people.project, by=people.owner, spec=spec), by=people.owner
    )
    (trial,) = make_trials(job, 1)
    job.trials.update(bracket=1, rung=1, epochs=9)
    for rung, saw in enumerate(
        ({"promoted": True, "cutoff": 0.78, "of": 5}, {"promoted": False, "cutoff": None, "of": 1})
    ):
        trial.decisions.create(rule="hyperband", rung=rung, epoch=3**rung * 3, value=0.8, saw=saw)
    trial.decisions.create(
        rule="median", rung=0, epoch=4, saw={"promoted": False, "cutoff": 0.9, "of": 7, "execution": 2}
    )
    page = browser.get(f"/jobs/{job.pk}/trials/1")
    place = page.context["place"]
    assert (place.bracket, place.brackets, place.rung, place.ends) == (2, 3, 2, (3, 9))
    text = text_of(page)
    assert "2 of 2; they end at epochs 3, 9" in text
    for words in (
        "≥ 0.7800",
        "5 trials",
        "no trial was promoted",
        "1 trial ",
        "median pruner –",
        "7 others",
        "execution 2",
    ):
        assert words in text, words


def test_the_page_of_a_trial_queries_decisions_and_executions_once(browser: Client, search: Job) -> None:
    with CaptureQueriesContext(connection) as queries:
        browser.get(f"/jobs/{search.pk}/trials/1")
    of_trial = [query["sql"] for query in queries if '"trial_id" IN' in query["sql"]]
    for table in ("jobs_trialdecision", "jobs_execution"):
        assert sum(f'FROM "{table}"' in sql for sql in of_trial) == 1, table
    assert not any(
        'FROM "jobs_trialdecision"' in query["sql"] for query in queries if query["sql"] not in of_trial
    )


def test_a_trial_joins_the_best_others_or_those_of_the_newest_ensemble(browser: Client, search: Job) -> None:
    for number in range(3, 7):
        digest, score = str(number), 0.5 + number / 100
        search.trials.create(
            number=number, values={"units": 16}, values_digest=digest, score=score, state="completed"
        )
    address = f"/jobs/{search.pk}"

    def offered() -> list[int]:
        candidates = browser.get(f"{address}/trials/6").context["candidates"]
        return [candidate.trial.number for candidate in candidates if candidate.selected]

    assert offered() == [2, 1]
    answer = browser.post(f"{address}/ensemble", {"trials": ["6", "3,4"]})
    ensemble = Job.objects.latest("pk")
    assert (answer.status_code, answer["Location"], ensemble.title) == (
        303, f"/jobs/{ensemble.pk}", "Ensemble of trials 3, 4, 6",
    )  # fmt: skip
    assert offered() == [4, 3]
    assert f'href="{address}/trials/4"' in browser.get(f"/jobs/{ensemble.pk}").content.decode()
    search.trials.filter(number=4).update(state="failed", score=0.54)  # after a rung
    assert offered() == [3]
    assert not browser.get(f"{address}/trials/4").context["candidates"]


@pytest.mark.parametrize("sent", [["1"], ["1", "x"], ["1", "-2"], ["1", "99"], []])
def test_invalid_trials_of_an_ensemble_are_rejected(browser: Client, search: Job, sent: list[str]) -> None:
    assert browser.post(f"/jobs/{search.pk}/ensemble", {"trials": sent}).status_code == 422
    assert Job.objects.count() == 1
