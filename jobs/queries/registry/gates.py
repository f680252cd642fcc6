"""Reads a promotion request's gates."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from jobs.models import PromotionRequest
from jobs.spec.sections.search import Direction

AUTHORSHIP = "rules_written_by_others"
"""The gate that is there if the requester or the author changed the rules."""
GateState = Literal["passed", "failed", "skipped", "not_evaluated", "overridden"]


class Alternative(BaseModel):
    """One comparison in a gate that passes if any of several does."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    metric: str
    direction: Direction
    value: float | None = None
    limit: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    passed: bool = False


class Gate(BaseModel):
    """One check before a version may serve, with the values that were compared."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    state: GateState
    value: float | str | bool | None = None
    limit: float | str | bool | None = None
    champion: float | str | bool | None = None
    detail: str = ""
    rule: str = ""
    metric: str = ""
    direction: Direction | None = None
    low: float | None = None
    high: float | None = None
    rows: int | None = None
    alternatives: tuple[Alternative, ...] = ()


def read_gates(promotion: PromotionRequest) -> list[Gate]:
    """Return a promotion request's gates; none while they run."""
    return [Gate.model_validate(item) for item in promotion.gates]


def unevaluated_gates(gates: list[Gate]) -> list[str]:
    """Name the gates that were not evaluated. An approver must accept each."""
    return [gate.name for gate in gates if gate.state == "not_evaluated"]


def gate_title(name: str) -> str:
    """Return a gate's name in words. Floors and slices are named after their metric, column and value."""
    kind, _, subject = name.partition(":")
    title = _TITLES.get(kind, name)
    return f"{title}: {subject}" if subject and kind in _TITLES else title


def next_step(gate: Gate) -> str:
    """Return the requester's or the approver's next step for a gate that has not passed."""
    if gate.state == "not_evaluated":
        return "An approver who takes responsibility for it accepts it by name."
    if gate.state != "failed":
        return ""
    kind = gate.name.partition(":")[0]
    return _NEXT_STEPS.get(kind, "Correct the cause that is named here, then request the promotion again.")


_TITLES = {
    "loads": "File loads",
    "digest": "Digest",
    "signature": "Signature",
    "metric": "Metric against the champion",
    "better_than_baseline": "Lead over a constant prediction",
    "finite": "Finite predictions",
    "batch_invariance": "Independence of the batch",
    "latency": "Latency",
    "floor": "Floor",
    "slice": "Slice",
    "gates": "Job of the gates",
    AUTHORSHIP: "Rules written by others",
}

_ASK = "ask an approver to change the gates of the model, then request the promotion again."
_NEXT_STEPS = {
    "loads": "Register a version from a job here, or upload a file that Keras loads in safe mode.",
    "digest": "The stored file was altered. Register the model again from its job.",
    "signature": "Clients of the present version would fail. Train with the same columns and classes, or "
    "register the version under a new model name.",
    "metric": "Train a better version. If it was trained for another measure, or a small loss is acceptable, "
    + _ASK,
    "better_than_baseline": "By this metric the version is no better than a constant. Train it on. If it was "
    "trained for another measure, such as the AUC under class weights, " + _ASK,
    "finite": "Some predictions are NaN or infinite. Train with float32, a smaller learning rate or "
    "clipnorm.",
    "batch_invariance": "Remove the layer that mixes the rows of a batch, such as a normalization over them.",
    "latency": "Choose a smaller model or quantize it. If the ceiling is too low for this hardware, " + _ASK,
    "floor": "Train a better version. If the floor is too high, " + _ASK,
    "slice": "Train a version that is better on these rows, for example with more of them or with class "
    "weights. If the limit is too strict, " + _ASK,
    "gates": "The gate job did not end. Read its log, then request the promotion again.",
}
