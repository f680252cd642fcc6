"""What the gates of a promotion say, read from the row, and what an approver must accept by name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from jobs.errors import GatesOpen
from jobs.models import PromotionRequest

GateState = Literal["passed", "failed", "skipped", "not_evaluated", "overridden"]


class Gate(BaseModel):
    """One check of a version before it may serve, with the numbers that it was judged by."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    state: GateState
    value: float | str | bool | None = None
    limit: float | str | bool | None = None
    champion: float | str | bool | None = None
    detail: str = ""


def read(promotion: PromotionRequest) -> list[Gate]:
    """Return the gates of a promotion, none while they run."""
    return [Gate.model_validate(item) for item in promotion.gates]


def from_result(result: Mapping[str, Any]) -> list[Gate]:
    """Return the gates in a gate job's result; one that cannot be read counts as failed."""
    items = result.get("gates")
    if not isinstance(items, list) or not items:
        return [broken("the gate job came back without gates")]
    return [_gate(item) for item in items]


def _gate(item: Any) -> Gate:
    try:
        return Gate.model_validate(item)
    except ValidationError as error:
        return broken(f"unreadable: {error.errors()[0]['msg']}")


def broken(why: str) -> Gate:
    """Return the failed gate that stands for gates which could not be run."""
    return Gate(name="gates", state="failed", detail=why)


def failed(gates: Iterable[Gate]) -> list[str]:
    """Return the names of the gates that failed."""
    return [gate.name for gate in gates if gate.state == "failed"]


def must_accept(gates: Iterable[Gate]) -> list[str]:
    """Return the names of the gates that were not evaluated: an approver answers for each of them."""
    return [gate.name for gate in gates if gate.state == "not_evaluated"]


def require_accepted(gates: Sequence[Gate], accept: Iterable[str]) -> list[str]:
    """Return the open gates that the approver accepts.

    Raises:
        GatesOpen: one of them stands open still.
    """
    opened = must_accept(gates)
    missing = sorted(set(opened) - set(accept))
    if missing:
        names = ", ".join(missing)
        raise GatesOpen(f"Not evaluated and not accepted: {names}. Name them in `accept` to answer for them.")
    return opened
