"""Describes a promotion gate's outcome: its state, and the numbers that explain it."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from jobs.spec.sections.search import Direction
from workers.engine.evaluation.gate_metrics import Estimate
from workers.engine.report import finite_or_none

State = Literal["passed", "failed", "skipped", "not_evaluated"]


@dataclass(frozen=True)
class Alternative:
    """One comparison in a gate that passes if any of several does.

    Attributes:
        metric: its name.
        direction: its better direction.
        value: the challenger's value.
        limit: the value it was compared with.
        gain: by how much it is better; negative if it is worse.
        low: lower bound of the gain's 95 % interval.
        high: upper bound.
        passed: whether this comparison alone passes the gate.
    """

    metric: str
    direction: Direction
    value: float
    limit: float
    gain: float
    low: float
    high: float
    passed: bool

    def sentence(self) -> str:
        """Return the comparison with its numbers."""
        verb = "passes" if self.passed else "does not pass"
        return (
            f"{self.metric} {self.value:.4g} against {self.limit:.4g} {verb}: gain {self.gain:.4g} "
            f"({self.low:.4g} to {self.high:.4g})"
        )


@dataclass(frozen=True)
class GateOutcome:
    """One gate's result.

    Attributes:
        name: the gate's name.
        state: the gate's state.
        value: the challenger's value.
        limit: the value it was compared with.
        champion: the champion's value.
        detail: a message for users.
        rule: the rule that was applied, with its numbers.
        metric: the metric that `value` measures; empty if there is none.
        direction: its better direction.
        low: lower bound of the value's 95 % interval.
        high: upper bound.
        rows: the test row count.
        alternatives: the comparisons if there are several; one must pass.
    """

    name: str
    state: State
    value: float | str | None = None
    limit: float | str | None = None
    champion: float | str | None = None
    detail: str = ""
    rule: str = ""
    metric: str = ""
    direction: Direction | None = None
    low: float | None = None
    high: float | None = None
    rows: int | None = None
    alternatives: tuple[Alternative, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return all attributes as a JSON object, with null for NaN and infinity."""
        body = asdict(self)
        body["alternatives"] = [
            {
                key: finite_or_none(item) if isinstance(item, float) else item
                for key, item in alternative.items()
            }
            for alternative in body["alternatives"]
        ]
        return body


class ChallengerMetric(NamedTuple):
    """The challenger's metric on `rows` test rows, with its interval.

    Attributes:
        metric: its name.
        direction: its better direction.
        value: the challenger's value.
        rows: the test row count.
        weighted_by: the column whose numbers weigh the rows; empty if each counts once.
    """

    metric: str
    direction: Direction
    value: Estimate
    rows: int
    weighted_by: str = ""

    @property
    def weighting(self) -> str:
        """How rows are weighted, to follow their name in a sentence; empty if each counts once."""
        return weighting(self.weighted_by)

    @property
    def bound(self) -> str:
        """How the value must relate to its limit."""
        return "at least" if self.direction == "max" else "at most"

    def outcome(self, name: str, state: State, **more: Any) -> GateOutcome:
        """Return the outcome for the gate `name`; `more` are its further attributes."""
        return GateOutcome(
            name,
            state,
            finite_or_none(self.value.value),
            metric=self.metric,
            direction=self.direction,
            low=finite_or_none(self.value.low),
            high=finite_or_none(self.value.high),
            rows=self.rows,
            **more,
        )


def weighting(column: str) -> str:
    """Return how a column weighs rows, to follow their name in a sentence; empty without one."""
    return f" (weighted by {column})" if column else ""


def state_of(passed: bool) -> State:
    """Return the state for a gate that was evaluated: `passed` or `failed`."""
    return "passed" if passed else "failed"
