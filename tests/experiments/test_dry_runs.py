"""Dry runs of a precision and the cards of the policies: by REST, on pages, and who may see them."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.runs import attempt_end, schedule
from jobs.kinds.dry_run.payload import DryRunPayload
from jobs.models import Job, Membership, User, Worker
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard, make_yard
from tests.markup import text_of
from tests.people import browser_of

SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": "flowers"},
    "model": {"kind": "template", "template": "mlp"},
    "precision": {"policy": "mixed_bfloat16"},
    "search": {"max_trials": 3, "space": [{"name": "units", "kind": "int", "min": 8, "max": 16}]},
    "after": {"retrain": {}},
}


def run(policy: str, seconds: float, loss: float, size: int = 1000, **more: Any) -> dict[str, Any]:
    return {
        "policy": policy, "losses": [2.0, loss], "seconds_per_step": seconds, "variable_bytes": size,
        "is_finite": True, **more,
    }  # fmt: skip


RESULT = {
    "comparison": {
        "baseline": run("float32", 0.001, 0.51), "compared": run("mixed_bfloat16", 0.002, 0.52),
        "steps_per_loss": 10, "rows": 100, "platform": "cpu", "hardware": "A CPU, 1 of 2 threads",
    }
}  # fmt: skip


@pytest.fixture
def own(db: None) -> Yard:
    return make_yard()


@pytest.fixture
def api(own: Yard) -> Client:
    return browser_of(own.owner)


@pytest.fixture
def worker(own: Yard) -> PretendWorker:
    return PretendWorker()


def ask(api: Client, spec: Any = SPEC, **more: Any) -> Any:
    body = {"project": "yard", "spec": spec, **more}
    return api.post("/api/v1/experiments/dry-run", body, content_type="application/json")


def finish(worker: PretendWorker, error: Any = None) -> None:
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    if error is None:
        attempt_end.finish(attempt.pk, Outcome.COMPLETED, result=RESULT)
    else:
        attempt_end.finish(attempt.pk, Outcome.FAILED, error=error)


def test_the_same_request_returns_the_state_and_then_the_result(api: Client, worker: PretendWorker) -> None:
    first = ask(api)
    assert first.status_code == 202, first.content
    assert (first.json()["state"], first.json()["result"]) == ("queued", None)
    assert ask(api).json()["job"] == first.json()["job"]
    finish(worker)
    answer = ask(api).json()
    assert (answer["state"], answer["policy"]) == ("completed", "mixed_bfloat16")
    assert answer["result"]["compared"]["losses"] == [2.0, 0.52]
    assert answer["finding"] == (
        "mixed_bfloat16 is 2.0× slower on this CPU; after 20 steps its loss is 0.52, in float32 0.51; its "
        "variables take as much memory."
    )
    assert ask(api, steps=20).json()["job"] != answer["job"]


def test_it_runs_neither_the_search_nor_the_steps_and_is_not_listed(api: Client) -> None:
    job = Job.objects.get(pk=ask(api).json()["job"])
    spec = job.payload_as(DryRunPayload).spec
    assert (spec.search, spec.after.retrain, spec.mesh) == (None, None, None)
    assert spec.precision.policy == "mixed_bfloat16"
    assert "Dry run in" not in text_of(api.get("/jobs"))


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"precision": {"policy": "float16"}}, "/spec/precision/policy"),
        ({"precision": {}}, "/spec/precision/policy"),
        ({"precision": {"policy": "half"}}, "/spec/precision/policy"),
        ({"data": {"dataset": "none"}}, "/spec/data/dataset"),
        ({"model": {"kind": "template", "template": "trees"}, "search": None}, "/spec/precision"),
        ({"fit": {"epochs": 0}}, "/spec/fit/epochs"),
    ],
)
def test_a_wrong_request_names_its_field(api: Client, change: dict[str, Any], pointer: str) -> None:
    answer = ask(api, {**SPEC, **change})
    assert answer.status_code == 422, answer.content
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert not Job.objects.exists()
    assert ask(api, steps=0).status_code == 422


def test_a_failed_one_is_repeated_on_request_only(api: Client, worker: PretendWorker) -> None:
    first = ask(api).json()["job"]
    finish(worker, {"code": "bad_spec", "message": "no layer"})
    failed = ask(api).json()
    assert (failed["state"], failed["job"], failed["error"]["message"]) == ("failed", first, "no layer")
    assert ask(api, again=True).json()["job"] != first


def test_only_people_who_may_submit_compare(own: Yard) -> None:
    viewer, stranger = (User.objects.create_user(name) for name in ("vera", "sam"))
    Membership.objects.create(project=own.project, user=viewer, role="viewer")
    assert ask(browser_of(viewer)).status_code == 403
    assert ask(browser_of(stranger)).status_code == 404
    assert ask(Client()).status_code == 401
    assert browser_of(viewer).get("/p/yard/precision").status_code == 200
    assert browser_of(stranger).get("/p/yard/precision").status_code == 404
    assert browser_of(stranger).get("/api/v1/precision?project=yard").status_code == 404
    assert not Job.objects.exists()


def test_its_page_and_the_cards_show_what_was_measured(api: Client, worker: PretendWorker) -> None:
    job = ask(api).json()["job"]
    assert "Some steps are trained in both" in text_of(api.get(f"/jobs/{job}"))
    finish(worker)
    assert "mixed_bfloat16 is 2.0× slower on this CPU" in text_of(api.get(f"/jobs/{job}"))
    Worker.objects.update(devices=[{"name": "cpu:0", "kind": "cpu"}])
    for path in ("/p/yard/precision", "/p/yard/experiments/new"):
        text = text_of(api.get(path))
        assert "mixed_bfloat16 is 2.0× slower on this CPU" in text
        assert "CPUs accelerate no format below float32" in text
    items = api.get("/api/v1/precision?project=yard").json()["items"]
    measured = {item["policy"]: item["measured"] for item in items if item["measured"]}
    assert list(measured) == ["mixed_bfloat16"]


def test_rest_describes_the_devices_of_a_pool(api: Client) -> None:
    PretendWorker(gpus=1)

    def devices(pool: str) -> list[Any]:
        items = api.get("/api/v1/precision", {"pool": pool}).json()["items"]
        return [item["devices"] for item in items]

    assert all(devices("default"))
    assert not any(devices("large"))


def test_rest_lists_the_policies_with_formats_memory_and_verdicts(api: Client) -> None:
    items = {item["policy"]: item for item in api.get("/api/v1/precision").json()["items"]}
    half = items["float16"]
    assert (half["trains"], half["bytes_per_parameter"], half["training_bytes_per_parameter"]) == (
        False,
        2,
        8,
    )
    assert half["computes"]["largest"] == 65504 and half["computes"]["mantissa"] == 10
    assert "train with mixed_float16" in half["training"]
    assert items["float64"]["keeps"]["bits"] == 64
    assert items["float8"]["layers"].startswith("Dense and EinsumDense")
    assert all(item["devices"] == [] for item in items.values())


def test_a_lost_worker_repeats_it_once_and_the_same_request_waits_for_it(
    api: Client, worker: PretendWorker
) -> None:
    job = ask(api).json()["job"]
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    attempt_end.finish(attempt.pk, Outcome.LOST)
    waiting = ask(api).json()
    assert (waiting["job"], waiting["state"]) == (job, "retrying")
    finish(worker)
    assert ask(api).json()["state"] == "completed"
