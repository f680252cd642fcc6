"""Reads the gates of a promotion request."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from jobs.models import PromotionRequest

GateState = Literal["passed", "failed", "skipped", "not_evaluated", "overridden"]


class Gate(BaseModel):
    """One check of a version before it may serve, with the values that were compared."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    state: GateState
    value: float | str | bool | None = None
    limit: float | str | bool | None = None
    champion: float | str | bool | None = None
    detail: str = ""


def read(promotion: PromotionRequest) -> list[Gate]:
    """Return the gates of a promotion request; none while they run."""
    return [Gate.model_validate(item) for item in promotion.gates]


def not_evaluated(gates: list[Gate]) -> list[str]:
    """Return the names of the gates that were not evaluated. An approver must accept each of them."""
    return [gate.name for gate in gates if gate.state == "not_evaluated"]
