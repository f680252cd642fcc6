"""Requests for dry builds and for experiments with own code, and the result of a dry build."""

from typing import Any

from django.test import Client

from jobs.actions.runs import attempt_end, schedule
from jobs.spec.checks.dry_build import BuiltModel
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker

SPACE: list[dict[str, Any]] = [
    {"name": "units", "kind": "int", "min": 8, "max": 32, "step": 8},
    {"name": "rate", "kind": "float", "min": 1e-3, "max": 0.1, "sampling": "log"},
    {"name": "dropout", "kind": "boolean"},
]
BUILT = BuiltModel.model_validate(
    {
        "space": SPACE,
        "is_compiled": True,
        "own_fit": False,
        "loss": "mse",
        "metrics": ("val_loss", "val_f1"),
        "input_shape": (2,),
        "output_shape": (3,),
        "output": "probabilities",
        "parameters": 12,
        "builds": 3,
    }
)
DATA = {"dataset": "flowers"}


def stored(api: Client, text: str) -> str:
    body = {"project": "yard", "files": [{"path": "model.py", "text": text}]}
    answer = api.post("/api/v1/code", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["digest"])


def ask(api: Client, code: str, entry: str = "build_model", **more: Any) -> Any:
    body = {"entry": entry, "data": DATA, **more}
    return api.post(f"/api/v1/code/{code}/dry-builds", body, content_type="application/json")


def field(name: str, *values: float) -> dict[str, Any]:
    """Return a search space's row for a fit field."""
    return {"name": f"fit/{name}", "kind": "choice", "values": [*values]}


def finish(worker: PretendWorker, built: BuiltModel | None = BUILT, error: Any = None) -> None:
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    if built is None:
        attempt_end.finish(attempt.pk, Outcome.FAILED, error=error)
    else:
        result = {"built": built.model_dump(mode="json")}
        attempt_end.finish(attempt.pk, Outcome.COMPLETED, result=result)


def spec_of(code: str, **search: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "data": DATA,
        "model": {"kind": "code", "digest": code, "entry": "build_model"},
        "fit": {"epochs": 3},
        "search": {"max_trials": 3, "objective": {"metric": "val_f1", "direction": "max"}, **search},
    }


def created(api: Client, spec: dict[str, Any]) -> Any:
    body = {"project": "yard", "name": "own", "spec": spec}
    return api.post("/api/v1/experiments", body, content_type="application/json")


def pointers(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.content
    return [error["pointer"] for error in answer.json()["errors"]]
