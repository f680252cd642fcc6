"""Defines the payload, the result and the task of a promotion's gates."""

from typing import Any, Literal

from pydantic import Field

from jobs.kinds.base import Payload, Result
from jobs.messages.task import DatasetFile, InputPath, OptionalInputPath, Task
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.gates import GateRules
from jobs.spec.sections.search import Objective


class GatePayload(Payload):
    """The promotion request's primary key, and the digest of the code that its gates execute."""

    promotion: int
    code: str | None = None

    def code_digest(self) -> str | None:
        """Return the digest of the version's code, or else the champion's."""
        return self.code


class GateResult(Result):
    """The gates in order, as the runner reported them; `metrics` has challenger and champion."""

    gates: Any = None


CHALLENGER, CHAMPION = "challenger", "champion"
"""The names for models with code in a gate task."""


class GateTask(Task):
    """Compare a challenger with the champion on the same test rows.

    A version that needs code is one of `models`; it gives the task predictions only.
    """

    kind: Literal["gate"] = "gate"
    challenger: InputPath
    challenger_digest: str
    challenger_signature: dict[str, Any] = Field(
        default_factory=dict, description="the registered one, to which its predictions must fit"
    )
    challenger_classes: tuple[str, ...] | None = Field(
        default=None, description="in the order of its outputs; None if they are unknown"
    )
    champion: OptionalInputPath = None
    champion_signature: dict[str, Any] | None = None
    champion_classes: tuple[str, ...] | None = Field(default=None, description="see `challenger_classes`")
    sample: OptionalInputPath = Field(
        default=None,
        description="rows with which the challenger's validation has tried it",
    )
    dataset: DatasetFile | None
    spec: ExperimentSpec | None
    rules: GateRules = GateRules()
    objective: Objective | None = Field(default=None, description="of the search that made the challenger")
