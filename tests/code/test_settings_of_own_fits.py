"""Settings that do not fit a class's own `fit`, or its measures, are refused and nothing is queued."""

from typing import Any

from django.test import Client

from jobs.models import Job
from jobs.queries.search import outcomes
from jobs.spec.experiment import ExperimentSpec
from tests.code.dry_builds import BUILT, ask, created, field, finish, pointers, spec_of
from tests.code.test_dry_builds_of_searches import submitted
from tests.jobs.yard import PretendWorker
from tests.next_steps import has_next_step

OWN_FIT = {"own_fit": True, "one_call": True, "metrics": ("val_loss", "val_f1"), "measures_all": True}


def own_fit_spec(code: str, fit: dict[str, Any] | None = None, **search: Any) -> dict[str, Any]:
    """Return the spec of a search over a class with its own `fit`."""
    spec = spec_of(code, **search)
    spec["model"] = {**spec["model"], "entry": "TunedFit", "args": {"classes": 3}}
    return {**spec, "fit": fit or {}}


def built(api: Client, code: str, worker: PretendWorker, **fields: Any) -> None:
    ask(api, code, "TunedFit", args={"classes": 3})
    finish(worker, BUILT.model_copy(update={**OWN_FIT, **fields}))


def test_before_a_dry_build_settings_are_refused_that_no_own_fit_uses(api: Client, code: str) -> None:
    spec = own_fit_spec(
        code, {"learning_rate": 0.5, "class_weights": "balanced"}, space=[field("clipnorm", 1, 2)]
    )
    assert pointers(created(api, spec)) == [
        "/spec/fit/learning_rate", "/spec/fit/class_weights", "/spec/search/space/0/name",
    ]  # fmt: skip
    assert not Job.objects.exists()
    # Whether it sets these itself is not known yet.
    assert created(api, own_fit_spec(code, {"batch_size": 16, "epochs": 3})).status_code == 201


def test_an_own_fit_gets_the_size_of_a_batch_unless_it_sets_that_itself(
    api: Client, code: str, worker: PretendWorker
) -> None:
    built(api, code, worker, replaced=("epochs",))
    assert created(api, own_fit_spec(code, {"batch_size": 16, "shuffle": False})).status_code == 201
    refused = created(api, own_fit_spec(code, {"batch_size": 16, "epochs": 3}))
    assert pointers(refused) == ["/spec/fit/epochs"]
    assert "since its fit sets epochs" in refused.json()["errors"][0]["message"]


def test_trials_cannot_be_compared_at_epochs_that_a_fit_sets_itself(
    api: Client, code: str, worker: PretendWorker
) -> None:
    built(api, code, worker, replaced=("epochs",))
    assert pointers(created(api, own_fit_spec(code, algorithm="hyperband"))) == ["/spec/search/algorithm"]


def test_a_measure_that_no_epoch_of_an_own_fit_has_is_refused(
    api: Client, code: str, worker: PretendWorker
) -> None:
    built(api, code, worker, metrics=("val_loss", "f1"), replaced=())
    stopping = {"early_stopping": {"monitor": "val_auc"}}
    places = ["/spec/search/objective/metric", "/spec/fit/early_stopping/monitor"]
    assert pointers(created(api, own_fit_spec(code, stopping))) == places


def test_a_fit_that_did_not_validate_in_the_dry_build_may_do_so_in_a_later_epoch(
    api: Client, code: str, worker: PretendWorker
) -> None:
    built(api, code, worker, metrics=("loss", "f1"), replaced=())
    spec = own_fit_spec(code)
    assert created(api, spec).status_code == 201
    body = {"project": "yard", "spec": spec}
    plan = api.post("/api/v1/experiments/validate", body, content_type="application/json").json()["plan"]
    ((pointer, message),) = [
        (warning["pointer"], warning["message"])
        for warning in plan["warnings"]
        if "'val_f1'" in warning["message"]
    ]
    assert pointer == "/search/objective/metric" and has_next_step(message)


def test_a_number_that_a_fit_returns_is_any_objective(api: Client, code: str, worker: PretendWorker) -> None:
    built(api, code, worker, metrics=("loss",), measures_all=False, replaced=())
    assert created(api, own_fit_spec(code)).status_code == 201


def test_measures_of_a_model_that_is_not_compiled_are_those_of_the_experiment(
    api: Client, code: str, worker: PretendWorker
) -> None:
    built(api, code, worker, own_fit=False, one_call=False, is_compiled=False, metrics=(), task="multiclass")
    assert pointers(created(api, own_fit_spec(code))) == ["/spec/search/objective/metric"]
    accuracy = {"metric": "val_accuracy", "direction": "max"}
    assert created(api, own_fit_spec(code, objective=accuracy)).status_code == 201


def test_without_a_search_only_the_measure_that_chooses_the_epoch_is_needed(
    api: Client, code: str, worker: PretendWorker
) -> None:
    built(api, code, worker, metrics=("val_f1",), replaced=())
    spec = own_fit_spec(code)
    del spec["search"]
    assert pointers(created(api, spec)) == ["/spec/fit/early_stopping/monitor"], "it would be val_loss"
    by_retraining = {**spec, "after": {"retrain": {"monitor": "val_f1"}}}
    by_stopping = {**spec, "fit": {"early_stopping": {"monitor": "val_f1"}}}
    for chosen in (by_retraining, by_stopping):
        assert created(api, chosen).status_code == 201
        job = submitted(api, chosen)
        objective = outcomes.objective_of(job)
        assert (objective.metric, objective.direction) == ("val_f1", "max")
    wrong = {**spec, "after": {"retrain": {"monitor": "val_auc"}}}
    assert pointers(created(api, wrong)) == ["/spec/after/retrain/monitor"]


def test_own_code_has_the_batch_size_of_keras_unless_a_person_names_one(api: Client, code: str) -> None:
    of_code = [
        ExperimentSpec.model_validate({**own_fit_spec(code), "fit": fit}).fit.batch_size
        for fit in ({}, {"epochs": 2}, {"batch_size": 128})
    ]
    assert of_code == [32, 32, 128]
    without = {name: part for name, part in own_fit_spec(code).items() if name != "fit"}
    assert ExperimentSpec.model_validate(without).fit.batch_size == 32
    template = {"data": {"dataset": "flowers"}, "model": {"kind": "template", "template": "mlp"}}
    assert ExperimentSpec.model_validate(template).fit.batch_size == 128


def test_a_fit_that_sets_its_batch_size_takes_a_spec_that_names_none(
    api: Client, code: str, worker: PretendWorker
) -> None:
    built(api, code, worker, replaced=("batch_size",))
    assert created(api, own_fit_spec(code)).status_code == 201
    of_an_earlier_release = {"batch_size": 128}
    assert created(api, own_fit_spec(code, of_an_earlier_release)).status_code == 201
    assert pointers(created(api, own_fit_spec(code, {"batch_size": 16}))) == ["/spec/fit/batch_size"]


def test_the_plan_names_what_only_a_dry_build_can_check(
    api: Client, code: str, worker: PretendWorker
) -> None:
    def warned() -> list[str]:
        body = {"project": "yard", "spec": own_fit_spec(code)}
        answer = api.post("/api/v1/experiments/validate", body, content_type="application/json").json()
        return [w["message"] for w in answer["plan"]["warnings"] if "dry build" in w["message"]]

    (message,) = warned()
    assert "which settings, objectives and ranges the code takes" in message and has_next_step(message)
    built(api, code, worker, metrics=("val_loss", "val_f1"), replaced=())
    assert warned() == []
