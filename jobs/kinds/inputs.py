"""What people send to submit a job of a kind by itself: the fields that the kind adds to every payload."""

from functools import cache
from typing import Any

from pydantic import BaseModel, create_model

from jobs.contracts.base import Frozen
from jobs.kinds import KINDS
from jobs.kinds.base import Facts, Payload


def submittable_kinds() -> list[Facts]:
    """List the kinds that people may submit by themselves."""
    return [facts for facts in KINDS.values() if facts.submittable]


@cache
def input_model(payload: type[Payload]) -> type[BaseModel]:
    """Return the model of a payload's input: without the fields that Trainyard itself writes."""
    own = {
        name: (field.annotation, field)
        for name, field in payload.model_fields.items()
        if name not in Payload.model_fields
    }
    fields: dict[str, Any] = own
    return create_model(f"{payload.__name__}Input", __base__=Frozen, **fields)
