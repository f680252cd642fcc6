"""The plan shows the variables of own code after a dry build; its estimates take the right to run code."""

from typing import Any

import pytest
from django.test import Client

from jobs.kinds.mesh_estimate.payload import MeshEstimatePayload
from jobs.models import Job
from jobs.spec.checks.dry_build import BuiltModel
from jobs.spec.plan.model_state import BuiltVariable
from tests.code.dry_builds import BUILT, ask, finish, spec_of
from tests.jobs.yard import PretendWorker
from tests.markup import one_line, text_of
from tests.people import People, browser_of

VARIABLES = (
    BuiltVariable(path="dense/kernel", shape=(2, 8), slots=2),
    BuiltVariable(path="dense/bias", shape=(8,), slots=2),
)
WITH_VARIABLES: BuiltModel = BUILT.model_copy(update={"variables": VARIABLES, "row_bytes": 40})
PLACE = "/api/v1/experiments/mesh-estimates"


def planned(api: Client, spec: dict[str, Any]) -> Any:
    body = {"project": "yard", "spec": spec}
    answer = api.post("/api/v1/experiments/validate", body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()["plan"]


def single(code: str, **model: Any) -> dict[str, Any]:
    spec = spec_of(code)
    del spec["search"]
    return {**spec, "model": {**spec["model"], **model}, "fit": {"epochs": 3, "batch_size": 16}}


@pytest.fixture
def built(api: Client, code: str, worker: PretendWorker) -> str:
    ask(api, code)
    finish(worker, WITH_VARIABLES)
    return code


def test_the_plan_shows_the_variables_of_a_dry_build_and_their_memory(api: Client, built: str) -> None:
    plan = planned(api, single(built))
    assert [(row["path"], row["bytes"], row["dtype"]) for row in plan["variables"]] == [
        ("dense/kernel", 64, "float32"),
        ("dense/bias", 32, "float32"),
    ]
    memory = {"weights": 96, "gradients": 96, "optimizer": 192, "activations": 2 * 16 * 40}
    assert (plan["memory"], plan["memory_per_device"]) == (memory, sum(memory.values()))
    assert plan["parameters"] == 24 and "defaults" in plan["variables_note"]


def test_other_values_than_the_defaults_give_a_model_whose_variables_are_not_known(
    api: Client, built: str
) -> None:
    plan = planned(api, single(built, hyperparameters={"units": 16}))
    assert plan["variables"] == [] and "request an estimate" in plan["variables_note"]
    same = planned(api, single(built, hyperparameters={"units": 8}))
    assert len(same["variables"]) == 2


def test_before_a_dry_build_the_plan_says_that_the_variables_are_not_known(api: Client, code: str) -> None:
    plan = planned(api, single(code))
    assert (plan["variables"], plan["memory"]) == ([], None)
    assert "after a worker has built it" in plan["variables_note"]


def test_the_designer_follows_a_build_draws_the_model_and_shows_the_note_of_its_plan(
    api: Client, code: str, worker: PretendWorker
) -> None:
    query = {"code": code, "project": "yard", "entry": "build_model", "dataset": "flowers"}
    before = one_line(api.get("/mesh", query))
    assert "Build the model" in before and "data-building" not in before
    ask(api, code)
    building = one_line(api.get("/mesh", query))
    assert "data-building" in building and "Build again" not in building
    finish(worker, WITH_VARIABLES)
    built = api.get("/mesh", query)
    assert "data-building" not in one_line(built) and built.context["design"] is not None
    assert "The variables are those of the model without the search" in text_of(built)


def test_the_designer_shows_why_the_variables_of_a_build_are_not_listed(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker)
    page = api.get("/mesh", {"code": code, "project": "yard", "entry": "build_model", "dataset": "flowers"})
    assert "its variables are not listed. The variables of this model are known after" in text_of(page)


def test_an_estimate_of_own_code_takes_the_right_to_run_code(
    api: Client, built: str, people: People, worker: PretendWorker
) -> None:
    mesh = {"shape": [2], "axis_names": ["data"], "simulate": 2}
    body = {"project": "yard", "spec": {**single(built), "mesh": mesh}}
    refused = browser_of(people.member).post(PLACE, body, content_type="application/json")
    assert refused.status_code == 403
    answer = api.post(PLACE, body, content_type="application/json")
    assert answer.status_code == 202, answer.content
    payload = Job.objects.get(pk=answer.json()["job"]).payload
    assert isinstance(payload, MeshEstimatePayload)
    # It runs in the sandbox of this code, and knows the meaning of the outputs.
    assert (payload.code_digest(), payload.output) == (built, "probabilities")
