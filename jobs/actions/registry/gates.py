"""Reads a gate job's result, and checks that an approver accepts gates without a result."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from jobs.errors import GatesOpen
from jobs.models import GateRevision, PromotionRequest
from jobs.queries.registry import gate_rules
from jobs.queries.registry.gates import AUTHORSHIP, Gate, unevaluated_gates
from jobs.spec.problems import first

MAX_DETAIL = 2000


def read_result(items: Any) -> list[Gate]:
    """Return the gates that a gate job reported; an unreadable gate counts as failed."""
    if not isinstance(items, list) or not items:
        return [failed_gate("the gate job returned no gates")]
    gates = []
    for item in items:
        try:
            gates.append(Gate.model_validate(item))
        except ValidationError as error:
            gates.append(failed_gate(f"unreadable: {first(error).message}"))
    return gates


def failed_gate(why: str) -> Gate:
    """Return a failed gate in place of gates that could not be run."""
    return Gate(name="gates", state="failed", detail=why)


def failed_names(gates: Iterable[Gate]) -> list[str]:
    """Name the gates that failed."""
    return [gate.name for gate in gates if gate.state == "failed"]


def authorship_gates(promotion: PromotionRequest) -> list[Gate]:
    """Return a gate that the approver must accept if the requester or author wrote the rules themselves.

    Without it, a person who may both write and approve could loosen the gates for a version of their own,
    and the approver would see only that all gates have passed.
    """
    unreviewed = gate_rules.unreviewed_revisions(promotion)
    if not unreviewed or promotion.single_person:
        return []
    names = sorted({revision.created_by.username for revision in unreviewed})
    changes = [
        f"revision {revision.number}: {'; '.join(_rule_differences(promotion, revision))}"
        for revision in unreviewed
    ]
    return [
        Gate(
            name=AUTHORSHIP,
            state="not_evaluated",
            detail=f"changed by {' and '.join(names)}: {'. '.join(changes)}"[:MAX_DETAIL],
            rule="the requester and the version's author did not write the rules of these gates; otherwise "
            "the approver reads their changes and accepts them by name",
        )
    ]


def _rule_differences(promotion: PromotionRequest, revision: GateRevision) -> list[str]:
    before = promotion.model.gate_revisions.filter(number=revision.number - 1).first()
    return revision.rules.differences(gate_rules.rules_of(before))


def require_accepted(gates: list[Gate], accept: Iterable[str]) -> list[str]:
    """Return the open gates that the approver accepts.

    Raises:
        GatesOpen: a gate without a result was not accepted.
    """
    opened = unevaluated_gates(gates)
    missing = sorted(set(opened) - set(accept))
    if missing:
        names = ", ".join(missing)
        raise GatesOpen(
            f"Not evaluated and not accepted: {names}. To take responsibility, name them in `accept`."
        )
    return opened
