"""Defines the payload, the result and the task of a promotion's gates."""

from typing import Any, Literal

from pydantic import Field

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.gates import GateRules
from jobs.contracts.search import Objective
from jobs.contracts.task_parts import DatasetFile, InputPath, OptionalInputPath, Task
from jobs.kinds.base import Payload, Result


class GatePayload(Payload):
    """The promotion request, by its primary key, and the digest of the code that its gates execute."""

    promotion: int
    code: str | None = None

    def code_digest(self) -> str | None:
        """Return the digest of the code of the version, or else of the champion."""
        return self.code


class GateResult(Result):
    """The gates in order, as the runner reported them; `metrics` are of challenger and champion."""

    gates: Any = None


class GateTask(Task):
    """Compare a challenger with the champion on the same test rows."""

    kind: Literal["gate"] = "gate"
    challenger: InputPath
    challenger_digest: str
    champion: OptionalInputPath = None
    challenger_code: str = Field(
        default="", description="folder in that of `code` whose objects its file needs; empty for none"
    )
    champion_code: str = Field(default="", description="as `challenger_code`")
    champion_signature: dict[str, Any] | None = None
    dataset: DatasetFile | None
    spec: ExperimentSpec | None
    rules: GateRules = GateRules()
    objective: Objective | None = Field(default=None, description="of the search that made the challenger")
