"""What the gates of a promotion say, read from the row."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

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


def must_accept(gates: list[Gate]) -> list[str]:
    """Return the names of the gates that were not evaluated: an approver answers for each of them."""
    return [gate.name for gate in gates if gate.state == "not_evaluated"]
