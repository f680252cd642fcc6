"""Takes in what a gate job found, and holds an approver to what was not evaluated."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from jobs.contracts.problems import first
from jobs.errors import GatesOpen
from jobs.kinds.gate.payload import GateResult
from jobs.queries.gates import Gate, must_accept


def from_result(result: GateResult) -> list[Gate]:
    """Return the gates in a gate job's result; one that cannot be read counts as failed."""
    items = result.gates
    if not isinstance(items, list) or not items:
        return [broken("the gate job came back without gates")]
    return [_gate(item) for item in items]


def _gate(item: Any) -> Gate:
    try:
        return Gate.model_validate(item)
    except ValidationError as error:
        return broken(f"unreadable: {first(error).message}")


def broken(why: str) -> Gate:
    """Return the failed gate that stands for gates which could not be run."""
    return Gate(name="gates", state="failed", detail=why)


def failed(gates: Iterable[Gate]) -> list[str]:
    """Return the names of the gates that failed."""
    return [gate.name for gate in gates if gate.state == "failed"]


def require_accepted(gates: list[Gate], accept: Iterable[str]) -> list[str]:
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
