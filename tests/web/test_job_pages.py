"""The pages of a job and its trials, without a browser."""

import itertools
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import escape

from jobs.actions import attempts
from jobs.contracts import events as contract
from jobs.kinds import KINDS
from jobs.models import Analysis, Attempt, Checkpoint, Job, MetricSeries, Trial
from jobs.queries import home
from tests.factories import (
    SEARCH,
    make_attempt,
    make_dataset,
    make_experiment,
    make_job,
    make_model,
    make_promotion,
    make_trials,
    make_worker,
)
from tests.markup import one_line, text_of
from tests.people import People, browser_of

DROPOUT = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5}
OPTIMIZER = {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd"]}


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    return job


@pytest.fixture
def wide_search(people: People) -> Job:
    return searching(people, [*SEARCH["search"]["space"], DROPOUT, OPTIMIZER])


def searching(people: People, space: list[dict[str, Any]]) -> Job:
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": space}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    return make_job(experiment=experiment, by=people.owner, state="running")


@pytest.fixture
def browser(people: People, search: Job) -> Client:
    return browser_of(people.owner)


def test_the_home_page_has_the_best_score_of_all_trials(
    people: People, search: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "SPARK_POINTS", 1)
    search.trials.filter(number=1).update(score=0.99)
    (running,) = home.home(people.owner).running
    assert running.best == 0.99


@pytest.mark.parametrize("tab", [*KINDS["search"].tabs, "nonsense"])
def test_every_tab_is_shown_and_an_unknown_one_shows_the_overview(
    browser: Client, search: Job, tab: str
) -> None:
    assert browser.get(f"/jobs/{search.pk}", {"tab": tab}).status_code == 200


def test_a_search_with_several_objectives_names_them_and_its_front(people: People) -> None:
    objectives = [{"metric": "val_accuracy", "direction": "max"}, {"metric": "val_loss", "direction": "max"}]
    search = {"space": SEARCH["search"]["space"], "objectives": objectives}
    experiment = make_experiment(project=people.project, by=people.owner, spec={**SEARCH, "search": search})
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    browser = browser_of(people.owner)
    page = " ".join(browser.get(f"/jobs/{job.pk}").content.decode().split())
    assert "one of 2 trials on the Pareto front" in page
    assert ">val_accuracy</span>" in page and ">val_loss</span>" in page
    columns = browser.get(f"/api/v1/jobs/{job.pk}/trials/columns").json()
    assert columns["objectives"] == objectives


def test_a_trial_is_shown_beside_the_best(browser: Client, search: Job) -> None:
    page = browser.get(f"/jobs/{search.pk}/trials/1")
    assert [tuple(row) for row in page.context["rows"]] == [("units", 16, 32)]


def test_a_trial_is_shown_before_any_trial_has_a_score(browser: Client, search: Job) -> None:
    search.trials.update(state="running", score=None, finished=None)
    page = browser.get(f"/jobs/{search.pk}/trials/1")
    assert (page.status_code, page.context["best"]) == (200, None)
    assert "inactive" not in page.content.decode(), "no best trial is shown"


HUNG = {
    "code": "hung",
    "message": "The watchdog ended the run after 60 s without progress; its stacks are in the log.",
}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (HUNG, "The watchdog ended the run after 60 s without progress; its stacks are in the log."),
        ({"code": "lease_expired", "message": "worker a did not renew its lease"}, "Worker a did not renew"),
        (None, "Its worker was lost."),
    ],
)
def test_a_run_that_was_ended_and_restarted_says_so_with_its_cause(
    browser: Client, people: People, error: Any, cause: str
) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    training = make_job(experiment=experiment, by=people.owner, kind="train", state="retrying")
    worker = make_worker()
    lost = make_attempt(training, worker)
    Attempt.objects.filter(pk=lost.pk).update(
        state="ended", outcome="lost", error=error, ended=timezone.now()
    )

    def shown() -> str:
        return text_of(browser.get(f"/jobs/{training.pk}"))

    assert f"Attempt 1 was ended: {cause}" in shown()
    assert "It will be restarted from its newest checkpoint." in shown()
    following = make_attempt(training, worker)
    Attempt.objects.filter(pk=following.pk).update(record={"python": "3"}, resumed_from=115)
    assert "Attempt 2 resumed from step 115." in shown()
    Checkpoint.objects.create(
        job=training, attempt=1, step=115, epoch=5, folder="a", manifest="0", bytes=1, removed=timezone.now()
    )
    assert "Attempt 2 resumed from epoch 5." in shown()
    Attempt.objects.filter(pk=following.pk).update(resumed_from=None)
    assert "Attempt 2 began from the start." in shown()


def test_a_lost_attempt_of_a_search_names_its_trials_and_each_trial_shows_it(
    browser: Client, search: Job
) -> None:
    first, second = search.trials.order_by("number")
    lost = make_attempt(search, make_worker(), trial=first)
    Attempt.objects.filter(pk=lost.pk).update(state="ended", outcome="lost", error=HUNG)
    cause = f"was ended: {HUNG['message']}"
    assert f"Attempt 1 (trial {first.number}) {cause}" in text_of(browser.get(f"/jobs/{search.pk}"))
    assert f"Attempt 1 {cause}" in text_of(browser.get(f"/jobs/{search.pk}/trials/{first.number}"))
    assert cause not in text_of(browser.get(f"/jobs/{search.pk}/trials/{second.number}"))


def test_a_restart_shows_the_digests_of_the_weights_that_were_saved_and_loaded(
    browser: Client, search: Job
) -> None:
    first = search.trials.get(number=1)
    lost = make_attempt(search, make_worker(), trial=first)
    Attempt.objects.filter(pk=lost.pk).update(state="ended", outcome="lost")
    following = make_attempt(search, make_worker(), trial=first)
    resumed = {"trial": 1, "execution": 2, "epoch": 7, "saved": "a" * 64, "loaded": "a" * 64}
    Attempt.objects.filter(pk=following.pk).update(
        record={"python": "3", "resumed": [resumed, resumed | {"trial": 2}]}, resumed_from=70
    )
    same = "Trial 1, execution 2: weights after epoch 7, the same in the checkpoint"
    for address in (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/1"):
        page = text_of(browser.get(address))
        assert same in page
        assert "a" * 12 in page
        assert "Trial 2, execution 2" not in page, "another trial's"
    Attempt.objects.filter(pk=following.pk).update(record={"resumed": [resumed | {"loaded": "b" * 64}]})
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert (same in page, "not those of the checkpoint" in page) == (False, True)


def test_an_attempt_that_ended_on_request_or_never_ran_is_no_restart(browser: Client, search: Job) -> None:
    worker = make_worker()
    for outcome, error in (
        ("paused", None),
        ("completed", None),
        ("lost", {"code": "unclaimed", "message": ""}),
    ):
        ended = make_attempt(search, worker)
        Attempt.objects.filter(pk=ended.pk).update(state="ended", outcome=outcome, error=error)
    assert "was ended" not in text_of(browser.get(f"/jobs/{search.pk}"))


def test_a_phase_without_progress_is_shown_while_the_task_runs(browser: Client, people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    training = make_job(experiment=experiment, by=people.owner, kind="train", state="running")
    Job.objects.filter(pk=training.pk).update(started=timezone.now())
    progress = {"done": 3.5, "total": 5, "unit": "epochs", "phase": "timing"}
    Job.objects.filter(pk=training.pk).update(progress=progress)
    assert "choosing the faster way" in text_of(browser.get(f"/jobs/{training.pk}"))
    Job.objects.filter(pk=training.pk).update(progress={"phase": "compiling"})
    assert "compiling" in text_of(browser.get(f"/jobs/{training.pk}"))
    Job.objects.filter(pk=training.pk).update(state="paused")
    assert "compiling" not in text_of(browser.get(f"/jobs/{training.pk}"))


def test_the_phase_of_a_trial_is_shown_on_its_page_and_on_that_of_its_search(
    browser: Client, search: Job
) -> None:
    search.trials.update(state="running", score=None, finished=None)
    trial = search.trials.get(number=2)
    attempt = make_attempt(search, make_worker(), trial=trial)
    Trial.objects.filter(pk=trial.pk).update(attempt=attempt.number)
    addresses = {n: f"/jobs/{search.pk}/trials/{n}" for n in (1, 2)} | {0: f"/jobs/{search.pk}"}

    positions = itertools.count(1)

    def report(*events: contract.RunnerEvent) -> list[bool]:
        attempts.record(attempt.pk, events, spool_position=next(positions), stored={})
        return ["choosing the faster way" in text_of(browser.get(addresses[n])) for n in (0, 1, 2)]

    timing = contract.Phase(time=1, trial=2, name="timing")
    progress = contract.Progress(time=1, trial=2, done=1, total=2, unit="epochs")
    assert report(timing) == [True, False, True]
    assert report(progress) == [False, False, False]
    assert report(progress, timing) == [True, False, True]
    Attempt.objects.update(state="ended")
    assert "choosing the faster way" not in text_of(browser.get(addresses[2]))


def test_a_step_that_does_not_train_has_no_empty_chart(browser: Client, people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    pages = {}
    for kind in ("train", "ensemble"):
        step = make_job(experiment=experiment, by=people.owner, kind=kind, state="completed")
        pages[kind] = browser.get(f"/jobs/{step.pk}").content.decode()
    assert [("<ty-curves" in page) for page in pages.values()] == [True, False]
    assert re.search(r"<ty-curves[^>]* final", pages["train"]), "nothing is awaited"


def test_a_button_that_is_refused_shows_the_reason_on_its_page(browser: Client, search: Job) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed", desired="running")
    here = f"/jobs/{search.pk}/trials/1"
    answer = browser.post(f"{here}/again", headers={"referer": f"http://testserver{here}"})
    assert (answer.status_code, answer["Location"]) == (303, here)
    assert 'data-level="error"' in browser.get(here).content.decode()
    assert browser.post(f"{here}/again").status_code == 409, "without a page to return to"


@pytest.mark.parametrize("value", ["32", "many"])
def test_queueing_into_a_search_that_has_ended_leads_back_to_its_trials(
    browser: Client, search: Job, value: str
) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    answer = browser.post(f"/jobs/{search.pk}/trials", {"value-units": value}, follow=True)
    assert answer.redirect_chain == [(f"/jobs/{search.pk}?tab=trials", 303)]
    assert 'data-level="error"' in answer.content.decode()


def test_a_change_to_a_search_that_has_ended_leads_back_to_its_page(
    browser: Client, wide_search: Job
) -> None:
    typed = REVISED | {"revise-revision": "1", "revise-max_trials": "9"}
    Job.objects.filter(pk=wide_search.pk).update(state="completed")
    answer = browser.post(f"/jobs/{wide_search.pk}/revise", typed, follow=True)
    assert answer.redirect_chain == [(f"/jobs/{wide_search.pk}", 303)]
    assert 'data-level="error"' in answer.content.decode()


def test_the_values_of_a_trial_are_queued_again(browser: Client, search: Job) -> None:
    answer = browser.post(f"/jobs/{search.pk}/trials/2/again")
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{search.pk}/trials/3")
    again = search.trials.get(number=3)
    assert (again.values, again.source, again.state) == ({"units": 32}, "hand", "queued")


def test_a_trial_is_retrained_as_an_experiment_of_its_own(
    browser: Client, search: Job, people: People
) -> None:
    make_dataset("digits", by=people.owner)
    search.experiment.revisions.update(
        spec_json=SEARCH | {"after": {"retrain": {"top": 4}, "ensemble": {}, "quantize": {}}}
    )
    answer = browser.post(f"/jobs/{search.pk}/trials/2/train")
    job = Job.objects.latest("pk")
    assert (answer.status_code, answer["Location"], job.kind) == (303, f"/jobs/{job.pk}", "train")
    assert job.experiment_id != search.experiment_id
    assert job.revision.spec.search is None
    assert job.revision.spec.model.args["units"] == 32
    after = job.revision.spec.after
    assert (after.retrain.top, after.ensemble, after.quantize) == (1, None, None)


def test_a_queued_trial_shows_why_it_waits(browser: Client, search: Job) -> None:
    browser.post(f"/jobs/{search.pk}/trials/1/again")
    for path in (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/3"):
        assert "start one with: manage.py worker --pool default" in text_of(browser.get(path))
    make_attempt(search, make_worker(slots=1), trial=search.trials.get(number=1))
    assert "Needed: 1 of the 1 slot of pool default; 0 free now." in browser.get(path).content.decode()


def test_a_queued_search_shows_what_it_waits_for_and_no_empty_charts(people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    make_job(experiment=experiment, by=people.owner)
    search = make_job(experiment=experiment, by=people.owner, why_waiting="No worker runs in pool default.")
    browser = browser_of(people.owner)
    pages = {tab: browser.get(f"/jobs/{search.pk}", {"tab": tab}) for tab in ("overview", "charts")}
    assert "Number 2 in the queue : No worker runs in pool default." in text_of(pages["overview"])
    charts = ("<ty-history", "<ty-curves", "<ty-charts")
    assert not [chart for page in pages.values() for chart in charts if chart in page.content.decode()]
    make_trials(search, 1)
    pages = {tab: browser.get(f"/jobs/{search.pk}", {"tab": tab}) for tab in ("overview", "charts")}
    assert "<ty-history" in pages["overview"].content.decode()
    assert "<ty-charts" in pages["charts"].content.decode()


def test_the_best_trial_names_others_with_the_same_score(browser: Client, search: Job) -> None:
    assert "Same score as" not in text_of(browser.get(f"/jobs/{search.pk}"))
    search.trials.update(score=0.97, std=0.0)
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert (
        "mean of 2 trainings, all with this score Same score as trial 2 (the first of them is shown)." in page
    )


def test_a_paused_job_names_the_button_that_resumes_it(browser: Client, search: Job) -> None:
    search.trials.update(state="paused")
    Job.objects.filter(pk=search.pk).update(state="paused", desired="paused")
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert "2 trials wait. Paused at the newest checkpoint; Resume continues from there." in page
    assert "requested:" not in page, "a request that was carried out"
    Job.objects.filter(pk=search.pk).update(state="running", desired="paused")
    assert "requested: paused" in text_of(browser.get(f"/jobs/{search.pk}"))


def test_an_execution_that_a_stopped_trial_did_not_start_is_not_queued(browser: Client, search: Job) -> None:
    trial = search.trials.order_by("number").first()
    assert trial is not None
    trial.executions.update(state="queued")
    search.trials.filter(pk=trial.pk).update(state="stopped", finished=timezone.now())
    page = text_of(browser.get(f"/jobs/{search.pk}/trials/{trial.number}"))
    assert "not started" in page
    search.trials.filter(pk=trial.pk).update(state="queued", finished=None)
    assert "not started" not in text_of(browser.get(f"/jobs/{search.pk}/trials/{trial.number}"))


def test_only_an_unfinished_search_has_a_best_so_far(browser: Client, search: Job) -> None:
    search.trials.update(std=0.0)
    pages = (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/2")
    running = [text_of(browser.get(path)) for path in pages]
    Job.objects.filter(pk=search.pk).update(state="completed")
    completed = [text_of(browser.get(path)) for path in pages]
    assert "Best so far best: highest val_accuracy on" in running[0]
    assert "Answer best: highest val_accuracy on" in completed[0] and "Best so far" not in completed[0]
    assert " best so far" in running[1] and " best " in completed[1] and " best so far" not in completed[1]
    assert not any(" ± " in page for page in (*running, *completed)), "a standard deviation of 0 is not shown"


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
    shown = [(c.execution, c.step) for c in page.context["checkpoints"]]
    assert shown == [(1, first.step)]
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
        return [each.trial.number for each in candidates if each.selected]

    assert offered() == [2, 1]
    answer = browser.post(f"{address}/ensemble", {"trials": ["6", "3,4"]})
    made = Job.objects.latest("pk")
    assert (answer.status_code, answer["Location"], made.title) == (
        303, f"/jobs/{made.pk}", "Ensemble of trials 3, 4, 6",
    )  # fmt: skip
    assert offered() == [4, 3]
    assert f'href="{address}/trials/4"' in browser.get(f"/jobs/{made.pk}").content.decode()
    search.trials.filter(number=4).update(state="failed", score=0.54)  # after a rung
    assert offered() == [3]
    assert not browser.get(f"{address}/trials/4").context["candidates"]


@pytest.mark.parametrize("sent", [["1"], ["1", "x"], ["1", "-2"], ["1", "99"], []])
def test_invalid_trials_of_an_ensemble_are_rejected(browser: Client, search: Job, sent: list[str]) -> None:
    assert browser.post(f"/jobs/{search.pk}/ensemble", {"trials": sent}).status_code == 422
    assert Job.objects.count() == 1


def test_a_configuration_is_queued_by_hand(browser: Client, search: Job) -> None:
    answer = browser.post(f"/jobs/{search.pk}/trials", {"value-units": "48"})
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{search.pk}?tab=trials")
    assert search.trials.get(number=3).values == {"units": 48}


def test_an_invalid_configuration_is_shown_again_with_every_error_at_its_field(
    browser: Client, wide_search: Job
) -> None:
    typed = {"value-units": "abc", "value-dropout": "9", "value-optimizer": "sgd"}
    answer = browser.post(f"/jobs/{wide_search.pk}/trials", typed)
    form = answer.context["trial_form"]
    assert answer.status_code == 422
    assert form.errors == {
        "units": ["'abc' is not a whole number. Enter one from 16 to 64."],
        "dropout": ["9 is out of range. Enter a number from 0.0 to 0.5."],
    }
    page = answer.content.decode()
    assert all(escape(text) in page for texts in form.errors.values() for text in texts)
    assert 'value="abc"' in page
    assert 'value="9"' in page
    assert '<option value="sgd" selected>' in page
    assert not wide_search.trials.exists()


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("units", "", "Enter a whole number from 16 to 64."),
        ("units", "16.5", "'16.5' is not a whole number. Enter one from 16 to 64."),
        ("dropout", "nan", "nan is out of range. Enter a number from 0.0 to 0.5."),
        ("optimizer", "abacus", "'abacus' is not a value of this hyperparameter. Choose one of adam, sgd."),
    ],
)
def test_the_error_of_an_invalid_value_names_the_allowed_ones(
    browser: Client, wide_search: Job, name: str, typed: str, message: str
) -> None:
    good = {"value-units": "16", "value-dropout": "0.5", "value-optimizer": "adam"}
    answer = browser.post(f"/jobs/{wide_search.pk}/trials", good | {f"value-{name}": typed})
    assert answer.context["trial_form"].errors == {name: [message]}


def test_an_inactive_hyperparameter_is_ignored(browser: Client, people: People) -> None:
    child = {**DROPOUT, "when": {"name": "optimizer", "in": ["sgd"]}}
    job = searching(people, [OPTIMIZER, child])
    browser.post(f"/jobs/{job.pk}/trials", {"value-optimizer": "adam", "value-dropout": "9"})
    assert job.trials.get().values == {"optimizer": "adam"}


def test_reloading_an_invalid_configuration_redirects_to_the_trials(browser: Client, search: Job) -> None:
    answer = browser.get(f"/jobs/{search.pk}/trials", {"sort": "score"})
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{search.pk}?tab=trials&sort=score")


def test_a_cursor_of_another_list_is_refused(browser: Client) -> None:
    assert browser.get("/jobs", {"cursor": "x"}).status_code == 422


def test_an_ensemble_of_chosen_trials_is_one_of_its_candidates_once(
    browser: Client, search: Job, people: People
) -> None:
    chosen = {"search": search.pk, "chosen": [{"trial": n, "values": {"units": 16 * n}} for n in (1, 2)]}
    measured = {"metrics": {"test": {"accuracy": 0.98}}}
    root = make_job(
        experiment=search.experiment, by=people.owner, kind="chosen_ensemble", state="completed",
        payload=chosen, results=measured, title="Ensemble of trials 1, 2",
    )  # fmt: skip
    for kind, title in (("train", "Retrain trial 1"), ("ensemble", "Ensemble")):
        results = {**measured, "test_rows": 360}
        make_job(
            experiment=search.experiment, by=people.owner, kind=kind, state="completed",
            parent=root, root=root, results=results, title=title,
        )  # fmt: skip
    page = browser.get(f"/jobs/{root.pk}")
    assert {c["label"] for c in page.context["candidates"]} == {"Retrain trial 1", "Ensemble"}


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        ({}, "Compared as best"),
        ({"ensemble": {}, "register": {"model": "digits", "what": ["ensemble"]}}, "Compared as best"),
        ({"register": {"model": "digits"}}, "Registered and compared as best"),
    ],
)
def test_the_best_retrained_model_is_called_registered_only_if_the_experiment_registers_it(
    people: People, after: dict[str, Any], sentence: str
) -> None:
    steps = {"retrain": {"top": 2}, **after}
    experiment = make_experiment(project=people.project, by=people.owner, spec={**SEARCH, "after": steps})
    root = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(root, 1)
    make_job(
        experiment=experiment, by=people.owner, kind="train", state="completed", parent=root, root=root,
        payload={"trial": 1, "values": {"units": 16}},
        results={"metrics": {"test": {"accuracy": 0.98}}, "test_rows": 360}, title="Retrain trial 1",
    )  # fmt: skip
    text = text_of(browser_of(people.owner).get(f"/jobs/{root.pk}"))
    assert sentence in text
    assert ("Registered" in text) == sentence.startswith("Registered")


CHANGED = {"revise-revision": "1", "revise-max_trials": "9", "revise-max_consecutive_failures": "3"}


REVISED = CHANGED | {
    "revise-units:min": "16",
    "revise-units:max": "64",
    "revise-dropout:min": "0.0",
    "revise-dropout:max": "0.5",
    "revise-optimizer:values": ["sgd", "adam"],
}


def test_a_search_is_changed_in_its_dialog(browser: Client, wide_search: Job) -> None:
    page = browser.get(f"/jobs/{wide_search.pk}").content.decode()
    assert 'data-dialog="revise"' in page and 'value="4"' in page, "it shows the present values"
    typed = CHANGED | {
        "revise-units:min": "16",
        "revise-units:max": "32",
        "revise-dropout:min": "0.0",
        "revise-dropout:max": "0.5",
        "revise-optimizer:values": ["sgd"],
        "revise-comment": "adam diverges",
    }
    preview = browser.post(f"/jobs/{wide_search.pk}/revise/preview", typed).content.decode()
    assert "Trials, at most: 9, previously 4" in preview and "optimizer takes &#x27;sgd&#x27;" in preview
    assert wide_search.experiment is not None and wide_search.experiment.revisions.count() == 1
    answer = browser.post(f"/jobs/{wide_search.pk}/revise", typed)
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{wide_search.pk}")
    wide_search.refresh_from_db()
    assert wide_search.revision is not None and wide_search.revision.reason == "adam diverges"
    search = wide_search.revision.spec.search
    assert search is not None and [list(search.space[i].grid()) for i in (0, 2)] == [[16, 32], ["sgd"]]
    late = browser.post(f"/jobs/{wide_search.pk}/revise", typed | {"revise-max_trials": "12"})
    assert late.status_code == 409


def test_an_invalid_change_is_shown_again_in_the_dialog_at_its_field(browser: Client, search: Job) -> None:
    answer = browser.post(
        f"/jobs/{search.pk}/revise", CHANGED | {"revise-units:min": "0", "revise-units:max": "64"}
    )
    assert answer.status_code == 422 and "data-open-now" in answer.content.decode()
    assert list(answer.context["revise_form"].errors) == ["units:min"]


def test_all_problems_of_a_change_are_shown_with_the_name_of_their_hyperparameter(
    browser: Client, wide_search: Job
) -> None:
    make_trials(wide_search, 4)
    typed = {"revise-max_trials": "3", "revise-units:max": "400", "revise-dropout:max": "abc"}
    problems = [
        "Trials, at most: 4 trials have already been created: use at least this number",
        "units, to: 400 is above 64, the maximum of &#x27;units&#x27;",
        "dropout, to: Enter a number.",
    ]
    preview = browser.post(f"/jobs/{wide_search.pk}/revise/preview", REVISED | typed).content.decode()
    assert [line in preview for line in problems] == [True] * 3
    answer = browser.post(f"/jobs/{wide_search.pk}/revise", REVISED | typed)
    page = re.sub("<[^>]*>", "", answer.content.decode())
    assert [line in page for line in problems] == [True] * 3
    assert "3 problems to fix" in page and "Nothing has changed yet" in page


def test_an_error_page_links_to_the_page_before(people: People) -> None:
    viewer, settings = browser_of(people.viewer), "/p/yard/settings"
    answer = viewer.post(
        settings, {"name": "Mine"}, headers={"referer": "http://testserver/projects?a=1&b=2"}
    )
    assert answer.status_code == 403
    assert f'href="{escape("/projects?a=1&b=2")}"' in answer.content.decode()
    elsewhere = viewer.post(settings, {"name": "Mine"}, headers={"referer": "https://example.org/x"})
    assert "example.org" not in elsewhere.content.decode()


def test_the_system_tab_names_its_charts_in_words(people: People, search: Job, browser: Client) -> None:
    for name in ("system/cpu_percent", "system/data_wait_percent", "system/other"):
        MetricSeries.objects.create(job=search, attempt=1, name=name, x="second", count=0)
    text = text_of(browser.get(f"/jobs/{search.pk}", {"tab": "system"}))
    assert "CPU runner and its children; 100 % is one core; by seconds since the start" in text
    assert "Waiting for data percent of the time of an epoch's steps" in text
    assert "system/cpu_percent" not in text
    assert "system/other" in text


def test_the_record_of_an_attempt_is_shown_in_words(people: People, search: Job, browser: Client) -> None:
    attempt = make_attempt(search, make_worker())
    attempt.record = {"packages": {"jax": "0.12.0", "keras": "3.15.1"}, "devices": [{"id": 0, "kind": "cpu"}]}
    attempt.save()
    page = browser.get(f"/jobs/{search.pk}", {"tab": "attempts"})
    assert "jax 0.12.0, keras 3.15.1" in text_of(page)
    assert "{&#x27;" not in page.content.decode()


def test_finish_stop_and_pause_say_what_they_do(browser: Client, search: Job, people: People) -> None:
    search.experiment.revisions.update(spec_json=SEARCH | {"after": {"retrain": {"top": 2}, "quantize": {}}})
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    markup = browser.get(f"/jobs/{search.pk}").content.decode()
    assert "Finish with what we have" in page
    assert "the steps after the search run with the best trials so far: train, quantize." in markup
    assert "The later steps do not run: train, quantize." in markup
    assert "Runners write checkpoints and free their slots; Resume continues from there." in markup
    assert "Finish with what we have" not in text_of(browser_of(people.viewer).get(f"/jobs/{search.pk}"))
    answer = browser.post(f"/jobs/{search.pk}/finish")
    assert answer.status_code == 303
    search.refresh_from_db()
    assert search.payload.finishing
    assert "Finish with what we have" not in text_of(browser.get(f"/jobs/{search.pk}"))


def test_a_search_without_a_score_offers_no_finish(browser: Client, search: Job) -> None:
    search.trials.update(state="running", score=None)
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert "Finish with what we have" not in page and "Best so far" not in page


def test_a_warning_begins_with_a_capital_letter_and_other_tabs_link_to_it(
    browser: Client, search: Job
) -> None:
    warnings = [{"code": "x", "message": "a long warning"}]
    Job.objects.filter(pk=search.pk).update(warnings=warnings)
    assert "A long warning" in text_of(browser.get(f"/jobs/{search.pk}"))
    logs = text_of(browser.get(f"/jobs/{search.pk}", {"tab": "logs"}))
    assert "long warning" not in logs and "1 note" in logs


def test_the_steps_of_one_kind_are_one_entry_with_a_link_to_each(people: People) -> None:
    after = {"retrain": {"top": 3}, "ensemble": {}, "register": {"model": "digits"}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=SEARCH | {"after": after})
    search = make_job(experiment=experiment, by=people.owner, state="running")
    states = {"6": "completed", "12": "completed", "2": "running"}
    for ordinal, (number, state) in enumerate(states.items()):
        make_job(
            kind="train", parent=search, ordinal=ordinal, state=state, title=f"Retrain trial {number}",
            by=people.owner, project=people.project,
        )  # fmt: skip
    page = browser_of(people.owner).get(f"/jobs/{search.pk}")
    steps = text_of(page).split("search completed")[1]
    assert (
        steps.split("Trials")[0].strip().startswith("Retrain trial 6 , 12 , 2 completed 2 running 1 ensemble")
    )
    assert 'aria-label="Retrain trial 12"' in page.content.decode()


def test_trials_that_wait_while_others_run_are_no_notice(browser: Client, search: Job) -> None:
    notice = "ty-note ty-job-why"
    search.trials.update(state="queued")
    address = f"/jobs/{search.pk}"
    assert notice in browser.get(address).content.decode()
    search.trials.filter(number=1).update(state="running")
    page = browser.get(address)
    assert notice not in page.content.decode() and "Trial 2 waits." in text_of(page)


def test_a_job_without_curves_has_no_tab_for_them(people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    has_tab = {}
    for kind in ("train", "ensemble", "register"):
        step = make_job(experiment=experiment, by=people.owner, kind=kind, state="completed")
        has_tab[kind] = "?tab=charts" in browser_of(people.owner).get(f"/jobs/{step.pk}").content.decode()
    assert has_tab == {"train": True, "ensemble": False, "register": False}


def test_a_forest_that_explains_nothing_is_said_before_its_shares(browser: Client, search: Job) -> None:
    Job.objects.filter(pk=search.pk).update(state="completed")
    found = {
        "used": 12, "trees": 64, "explained": -0.27,
        "importances": [{"name": "units", "alone": 0.68, "spread": 0.1, "impurity": 0.7}],
    }  # fmt: skip
    kind = Analysis.Kind.IMPORTANCE
    trials = search.trials.scored().count()
    Analysis.objects.create(job=search, kind=kind, trials=trials, result=found)
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert "explains only 0 % of the variance" in page and "-27" not in page
    assert page.index("explains only") < page.index("68 %")


def test_the_range_is_widened_in_the_search_space_of_the_form(browser: Client, search: Job) -> None:
    best = search.trials.scored().order_by("-score").first()
    space = SEARCH["search"]["space"]
    edge = {"name": "units", "kind": "int", "min": 8, "max": best.values["units"]}
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": [edge, *space[1:]]}}
    search.experiment.revisions.update(spec_json=spec)
    Job.objects.filter(pk=search.pk).update(state="completed")
    page = browser.get(f"/jobs/{search.pk}").content.decode()
    assert re.search(r'href="[^"]*/edit#search">', page)


def test_the_head_of_the_overview_is_redrawn_with_its_steps(browser: Client, search: Job) -> None:
    part = {"part": "head", "tab": "overview"}
    head = browser.get(f"/jobs/{search.pk}", part, headers={"HX-Request": "true"}).content.decode()
    assert "ty-job-counts" in head and "<html" not in head


def test_the_answer_starts_what_follows_in_one_click_each(
    browser: Client, search: Job, people: People
) -> None:
    make_dataset("digits", by=people.owner)
    wide = {
        **SEARCH["search"],
        "algorithm": "random",
        "space": [{**SEARCH["search"]["space"][0], "max": 512}],
    }
    search.experiment.revisions.update(spec_json={**SEARCH, "search": wide})
    Job.objects.filter(pk=search.pk).update(state="completed")
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    for label in ("Retrain", "Register", "Train the best two again", "Search a smaller range"):
        assert label in page
    for path in ("repeat", "narrow", "trials/2/register"):
        assert browser.post(f"/jobs/{search.pk}/{path}").status_code == 303
    registered, narrower, repeated = Job.objects.order_by("-pk")[:3]
    assert registered.revision.spec.after.register_.model
    assert narrower.revision.spec.search.space[0].max < 512
    assert repeated.trials.count() == 2
    viewer = browser_of(people.viewer)
    assert "Train the best two again" not in text_of(viewer.get(f"/jobs/{search.pk}"))
    assert viewer.post(f"/jobs/{search.pk}/repeat").status_code == 403


def test_one_training_of_each_shows_nothing_about_the_lead(browser: Client, search: Job) -> None:
    for trial in search.trials.all():
        trial.executions.filter(number=2).delete()
    Job.objects.filter(pk=search.pk).update(state="completed")
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert "That is not known yet. Each of the two was trained once." in page
    assert "To find out, train both again with new seeds." in page


def test_the_page_of_a_search_leads_to_the_versions_that_it_registered(
    browser: Client, search: Job, people: People
) -> None:
    done = {"metrics": {"test": {"accuracy": 0.98}}, "test_rows": 360}
    trained, registering = (
        make_job(
            experiment=search.experiment,
            by=people.owner,
            kind=kind,
            state="completed",
            parent=search,
            root=search,
            results=results,
            payload=payload,
        )
        for kind, results, payload in (("train", done, {}), ("register", {}, {"version": 0}))
    )
    version = make_model("flowers", project=people.project, by=people.owner).versions.get()
    version.source_job = trained
    version.save()
    Job.objects.filter(pk=registering.pk).update(payload_json={"version": version.pk})
    Job.objects.filter(pk=search.pk).update(state="completed")
    search.trials.update(state="completed", score=0.9)
    link, request = 'href="/models/flowers/versions/1"', "Request the promotion of"
    page = markup_of(browser, search)
    assert "Registered as" in page
    assert page.count(link) == 2
    assert request in page
    assert link in markup_of(browser, registering)
    make_promotion(version, by=people.owner)
    page = markup_of(browser, search)
    assert page.count(link) == 1
    assert request not in page


def markup_of(browser: Client, job: Job) -> str:
    return one_line(browser.get(f"/jobs/{job.pk}"))
