"""Reads the result of a gate job, and checks that an approver accepts gates without a result."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from jobs.contracts.problems import first
from jobs.errors import GatesOpen
from jobs.kinds.gate.payload import GateResult
from jobs.queries.gates import Gate, not_evaluated


def from_result(result: GateResult) -> list[Gate]:
    """Return the gates in a gate job's result; an unreadable gate counts as failed."""
    items = result.gates
    if not isinstance(items, list) or not items:
        return [failed_gate("the gate job returned no gates")]
    return [_gate(item) for item in items]


def _gate(item: Any) -> Gate:
    try:
        return Gate.model_validate(item)
    except ValidationError as error:
        return failed_gate(f"unreadable: {first(error).message}")


def failed_gate(why: str) -> Gate:
    """Return a failed gate in place of gates that could not be run."""
    return Gate(name="gates", state="failed", detail=why)


def failed_names(gates: Iterable[Gate]) -> list[str]:
    """Return the names of the gates that failed."""
    return [gate.name for gate in gates if gate.state == "failed"]


def require_accepted(gates: list[Gate], accept: Iterable[str]) -> list[str]:
    """Return the open gates that the approver accepts.

    Raises:
        GatesOpen: a gate without a result was not accepted.
    """
    opened = not_evaluated(gates)
    missing = sorted(set(opened) - set(accept))
    if missing:
        names = ", ".join(missing)
        raise GatesOpen(
            f"Not evaluated and not accepted: {names}. To take responsibility, name them in `accept`."
        )
    return opened
