"""Builds input models, from their payloads, for the kinds that users may submit directly."""

from functools import cache
from typing import Any

from pydantic import BaseModel, create_model

from jobs.kinds import KINDS
from jobs.kinds.base import Facts, Payload
from jobs.spec.base import Frozen


def submittable_kinds() -> list[Facts]:
    """List the kinds that users may submit directly."""
    return [facts for facts in KINDS.values() if facts.submittable]


@cache
def input_model(payload: type[Payload]) -> type[BaseModel]:
    """Return a payload's input model: its fields without those that Trainyard itself writes."""
    fields: dict[str, Any] = {
        name: (field.annotation, field)
        for name, field in payload.model_fields.items()
        if name not in Payload.model_fields
    }
    return create_model(f"{payload.__name__}Input", __base__=Frozen, **fields)
