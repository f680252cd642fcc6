"""A running search and its trials are changed over REST; refusals carry pointers."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs.models import Job
from tests.api.conftest import Caller
from tests.factories import SEARCH, make_experiment, make_job, make_trials, make_worker
from tests.people import People, browser_of


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 2)
    return job


@pytest.fixture
def owner(people: People, call: Callable[..., Caller]) -> Caller:
    return call(people.owner)


def pointers(answer: Any) -> list[str]:
    return [error["pointer"] for error in answer.json()["errors"]]


def test_a_search_is_revised_only_from_its_current_revision(owner: Caller, search: Job) -> None:
    address = f"/jobs/{search.pk}"
    assert owner.get(address)["ETag"] == '"1"'
    change = {"search": {"max_trials": 9, "space": [{"name": "units", "max": 32}]}, "comment": "64 is no use"}
    answer = owner.post(f"{address}/revise", change, **{"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["revision"], answer["ETag"]) == (202, 2, '"2"')
    late = owner.post(f"{address}/revise", {"search": {"max_trials": 8}, "revision": 1})
    assert (late.status_code, late.json()["code"]) == (409, "stale_state")
    assert owner.post(f"{address}/revise", change, **{"If-Match": '"1"'}).status_code == 412
    (newest, _) = owner.get(f"/experiments/{search.experiment_id}/revisions").json()["items"]
    assert (newest["number"], newest["reason"], newest["created_by"]) == (2, "64 is no use", "owner")
    assert newest["spec"]["search"]["space"][0]["max"] == 32


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"search": {"max_trials": 1}}, "/search/max_trials"),
        ({"search": {"max_trials": None}}, "/search/max_trials"),
        ({"search": {"max_trials": "many"}}, "/search/max_trials"),
        ({"search": {"algorithm": "grid"}}, "/search/algorithm"),
        ({"search": {"space": [{"name": "units", "min": 0}]}}, "/search/space/0/min"),
        ({"search": {"space": [{"name": "units", "min": {}}]}}, "/search/space/0/min"),
        ({"search": {"space": ["units"]}}, "/search/space/0"),
        ({"search": {}}, "/search"),
        ({}, "/search"),
    ],
)
def test_an_invalid_change_is_refused_with_its_pointer(
    owner: Caller, search: Job, body: Any, pointer: str
) -> None:
    answer = owner.post(f"/jobs/{search.pk}/revise", body)
    assert (answer.status_code, pointers(answer)) == (422, [pointer])


def test_viewers_and_strangers_cannot_change_a_search(
    people: People, call: Callable[..., Caller], search: Job
) -> None:
    for user, status in [(people.viewer, 403), (people.stranger, 404)]:
        caller = call(user)
        assert caller.post(f"/jobs/{search.pk}/revise", {"search": {"max_trials": 9}}).status_code == status
        assert caller.post(f"/jobs/{search.pk}/trials/1/continue", {"epochs": 9}).status_code == status


def test_a_trial_continues_only_from_a_checkpoint_and_to_more_epochs(owner: Caller, search: Job) -> None:
    address = f"/jobs/{search.pk}/trials/1/continue"
    gone = owner.post(address, {"epochs": 9})
    assert (gone.status_code, gone.json()["code"]) == (409, "stale_state")
    for execution in (1, 2):
        search.checkpoints.create(
            trial=search.trials.get(number=1),
            execution=execution,
            attempt=1,
            step=50,
            epoch=5,
            folder=f"{execution}",
            manifest="m",
            bytes=1,
        )
    assert pointers(owner.post(address)) == ["/epochs"]
    assert pointers(owner.post(address, {"epochs": 5})) == ["/epochs"]
    answer = owner.post(address, {"epochs": 9})
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")


def test_with_several_objectives_each_trial_has_its_scores_and_whether_it_is_on_the_front(
    people: People, call: Callable[..., Caller]
) -> None:
    objectives = [
        {"metric": "val_accuracy", "direction": "max"},
        {"metric": "val_loss", "direction": "min"},
    ]
    search = {key: value for key, value in SEARCH["search"].items() if key != "objective"}
    spec = {**SEARCH, "search": {**search, "objectives": objectives}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    for trial, (accuracy, loss) in zip(
        make_trials(job, 3), [(0.9, 0.3), (0.8, 0.1), (0.7, 0.2)], strict=True
    ):
        trial.executions.update(metrics={"val_accuracy": accuracy, "val_loss": loss})
    items = call(people.owner).get(f"/jobs/{job.pk}/trials").json()["items"]
    assert [item["pareto"] for item in items] == [True, True, False]
    assert items[0]["scores"] == {"val_accuracy": 0.9, "val_loss": 0.3}
    (best,) = (item["number"] for item in items if item["best"])
    assert best == 1, "the best trial of the first front by the first objective"
    assert call(people.owner).get(f"/jobs/{job.pk}/trials/columns").json()["front"] == [1, 2]


def test_with_one_objective_there_is_no_front(owner: Caller, search: Job) -> None:
    (first, _) = owner.get(f"/jobs/{search.pk}/trials").json()["items"]
    assert (first["scores"], first["pareto"], first["answered_by"]) == (None, None, None)


def test_an_ensemble_is_made_of_chosen_trials(owner: Caller, search: Job) -> None:
    answer = owner.post(f"/jobs/{search.pk}/ensemble", {"trials": [2, 1]})
    ensemble = answer.json()
    assert (answer.status_code, ensemble["kind"], ensemble["title"]) == (
        202,
        "ensemble",
        "Ensemble of trials 1, 2",
    )
    assert [step["kind"] for step in ensemble["steps"]] == ["train", "train", "ensemble"]
    again = owner.post(f"/jobs/{ensemble['id']}/clone").json()
    assert (again["kind"], again["title"]) == ("ensemble", "Ensemble of trials 1, 2")


@pytest.mark.parametrize(
    "sent", [{}, {"trials": [1]}, {"trials": [1, 99]}, {"trials": [1, "x"]}, {"trials": "1,2"}]
)
def test_an_invalid_ensemble_is_refused_with_its_pointer(
    owner: Caller, search: Job, sent: dict[str, Any]
) -> None:
    answer = owner.post(f"/jobs/{search.pk}/ensemble", sent)
    assert answer.status_code == 422
    assert all(pointer.startswith("/trials") for pointer in pointers(answer))


def test_an_ensemble_requires_the_permission_to_write(
    people: People, search: Job, call: Callable[..., Caller]
) -> None:
    sent = {"trials": [1, 2]}
    for user, status in [(people.viewer, 403), (people.stranger, 404)]:
        assert call(user).post(f"/jobs/{search.pk}/ensemble", sent).status_code == status
    assert call(people.owner, "read").post(f"/jobs/{search.pk}/ensemble", sent).status_code == 403


@pytest.mark.parametrize("left", ["queued", "paused"])
def test_executions_that_will_not_run_are_stopped_with_their_trial(
    owner: Caller, search: Job, left: str
) -> None:
    trial = search.trials.get(number=1)
    trial.executions.filter(number=2).update(state=left)
    for state, expected in (("running", left), ("stopped", "stopped"), ("failed", "stopped")):
        search.trials.filter(number=1).update(state=state)
        trial_out = owner.get(f"/jobs/{search.pk}/trials/1").json()
        assert [execution["state"] for execution in trial_out["executions"]] == ["completed", expected]
    table = b"".join(owner.get(f"/jobs/{search.pk}/trials.csv")).decode()
    assert left not in table


def test_a_trial_lists_the_decisions_on_it(owner: Caller, search: Job) -> None:
    trial = search.trials.get(number=1)
    trial.decisions.create(
        rule="asha", rung=0, epoch=3, value=0.8, saw={"promoted": True, "cutoff": 0.7, "of": 9}
    )
    trial.decisions.create(rule="median", rung=0, epoch=4, saw={"promoted": False, "execution": 1})
    trial_out = owner.get(f"/jobs/{search.pk}/trials/1").json()
    decision, by_median = trial_out["decisions"]
    assert (decision["rung"], by_median["rung"]) == (0, None)
    assert (trial_out["bracket"], trial_out["rung"]) == (0, 0)
    assert (decision["rule"], decision["threshold"], decision["of"], decision["promoted"]) == (
        "asha",
        0.7,
        9,
        True,
    )
    assert owner.get(f"/jobs/{search.pk}/trials").json()["items"][0]["decisions"] == trial_out["decisions"]


def test_an_invalid_configuration_is_refused_with_a_pointer_to_each_value(owner: Caller, search: Job) -> None:
    answer = owner.post(f"/jobs/{search.pk}/trials", {"values": {"units": 640, "a/b": 1}})
    assert (answer.status_code, pointers(answer)) == (422, ["/values/units", "/values/a~1b"])


def test_the_detail_of_a_refusal_names_every_pointer(owner: Caller, search: Job) -> None:
    answer = owner.send("patch", f"/jobs/{search.pk}", {"priority": 500, "pool": "No Such"})
    assert (answer.status_code, pointers(answer)) == (422, ["/priority", "/pool"])
    assert "/priority: " in answer.json()["detail"] and "/pool: " in answer.json()["detail"]


def test_a_change_to_a_pool_without_a_worker_is_made_with_a_warning(
    people: People, owner: Caller, search: Job
) -> None:
    def warnings(**change: Any) -> list[str]:
        answer = owner.send("patch", f"/jobs/{search.pk}", change)
        assert answer.status_code == 200
        return [warning["pointer"] for warning in answer.json()["warnings"]]

    assert warnings(pool="gpu") == ["/pool"]
    toast = browser_of(people.owner).post(f"/queue/{search.pk}/change", {"priority": 60}, follow=True)
    assert "no worker is running in pool &#x27;gpu&#x27;" in toast.content.decode()
    make_worker("box", pool="gpu", slots=2)
    assert warnings(priority=70) == []
    Job.objects.filter(pk=search.pk).update(slots=4)
    assert warnings(priority=70) == ["/slots"]


def test_a_search_is_finished_with_the_trials_it_has(
    people: People, call: Callable[..., Caller], owner: Caller, search: Job
) -> None:
    address = f"/jobs/{search.pk}/finish"
    assert call(people.viewer).post(address).status_code == 403
    assert call(people.stranger).post(address).status_code == 404
    answer = owner.post(address)
    assert (answer.status_code, answer.json()["finishing"]) == (202, True)
    again = owner.post(address)
    assert (again.status_code, again.json()["code"]) == (409, "stale_state")
    training = make_job(experiment=search.experiment, by=people.owner, kind="train", state="running")
    assert owner.post(f"/jobs/{training.pk}/finish").status_code == 409


def test_the_answer_names_the_best_trial_its_measure_and_its_lead(owner: Caller, search: Job) -> None:
    body = owner.get(f"/jobs/{search.pk}/answer").json()
    assert (body["over"], body["best"]["number"], body["next"]["number"]) == (False, 2, 1)
    assert body["scoring"]["text"].startswith("highest val_accuracy on ")
    assert (body["lead"]["method"], body["lead"]["trainings"]) == ("welch", [2, 2])


def test_repeats_and_smaller_searches_are_refused_without_a_configuration_to_compare(
    people: People, call: Callable[..., Caller], owner: Caller, search: Job
) -> None:
    search.trials.filter(number=1).delete()
    assert owner.post(f"/jobs/{search.pk}/repeat").status_code == 409
    bad = owner.post(f"/jobs/{search.pk}/repeat", {"executions": 1})
    assert (bad.status_code, pointers(bad)) == (422, ["/executions"])
    for path in ("repeat", "narrow"):
        assert call(people.viewer).post(f"/jobs/{search.pk}/{path}").status_code == 403
        assert call(people.stranger).post(f"/jobs/{search.pk}/{path}").status_code == 404
