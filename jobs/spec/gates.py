"""Defines the rules of a model's gates: the requirements for a version before it may serve."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from jobs.spec.base import Frozen
from jobs.spec.problems import Problem
from jobs.spec.sections import measures
from jobs.spec.sections.data import Task
from jobs.spec.sections.search import Direction, Objective


def _known_metric(name: str) -> str:
    if name not in measures.TEST_METRICS:
        raise ValueError(
            f"{name!r} is not measured on test rows; use one of {', '.join(measures.TEST_METRICS)}"
        )
    return name


Metric = Annotated[str, AfterValidator(_known_metric)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Floor(Frozen):
    """A value that a metric must reach on all test rows: at least, or at most if lower values are better."""

    metric: Metric
    limit: Number

    @property
    def gate(self) -> str:
        """Return the name of its gate."""
        return f"floor:{self.metric}"


class Slice(Frozen):
    """The test rows in which a column has a value. They have a gate of their own.

    The metric must reach `limit`, if it is set, and must not be worse than the champion's on the same rows by
    more than the tolerance.
    """

    column: Text
    value: Text = Field(description="numbers are compared as numbers, all other values as text")
    metric: Metric | None = Field(default=None, description="the metric of the gates if absent")
    limit: Number | None = None
    min_rows: int = Field(
        default=30, ge=1, le=1_000_000, description="with fewer rows the gate is not evaluated"
    )

    @property
    def gate(self) -> str:
        """Return the name of its gate."""
        suffix = f":{self.metric}" if self.metric else ""
        return f"slice:{self.column}={self.value}{suffix}"


class GateRules(Frozen):
    """The rules of the gates of one model. The defaults apply until an approver changes them."""

    metric: Metric | None = Field(
        default=None,
        description="the metric of all comparisons; the objective of the version's search if absent, and "
        "without a search accuracy, or rmse for regression",
    )
    tolerance: float = Field(
        default=0.01,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="how much worse than the champion a version may be: 0.01 is one point of accuracy, or "
        "1 % of the champion's value if lower values of the metric are better",
    )
    floors: tuple[Floor, ...] = Field(default=(), max_length=20)
    slices: tuple[Slice, ...] = Field(default=(), max_length=50)
    latency_p95_ms: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="the highest 95th percentile of the time for one row, in milliseconds",
    )

    def own_gates(self) -> list[str]:
        """Return the gate names for floors and slices."""
        rules: list[Floor | Slice] = [*self.floors, *self.slices]
        return [rule.gate for rule in rules]

    @model_validator(mode="after")
    def _check_repeated(self) -> Self:
        named: dict[str, Sequence[Floor | Slice]] = {"floors": self.floors, "slices": self.slices}
        for name, gates in named.items():
            for i, rule in enumerate(gates):
                if rule.gate in (earlier.gate for earlier in gates[:i]):
                    raise ValueError(f"{name}.{i}: {rule.gate} is there twice")
        return self

    def metric_for(self, task: Task, objective: Objective | None) -> tuple[str, Direction]:
        """Return the comparisons' metric, and its better direction.

        Args:
            task: the kind of prediction.
            objective: the search's objective; None without a search.
        """
        name = self.metric
        if name is None and objective is not None:
            name = measures.gate_metric(objective.metric, task)
        if name is None:
            name, _ = measures.primary_metric(task)
        return name, measures.TEST_METRICS[name][1]

    def problems(self, task: Task) -> list[Problem]:
        """Return the metrics that this prediction task cannot have."""
        metrics = {
            "/metric": self.metric,
            **{f"/floors/{i}/metric": floor.metric for i, floor in enumerate(self.floors)},
            **{f"/slices/{i}/metric": part.metric for i, part in enumerate(self.slices)},
        }
        fitting = measures.gate_metrics_for(task)
        return [
            Problem(pointer, f"{name!r} is not measured for a {task} task; use one of {', '.join(fitting)}")
            for pointer, name in metrics.items()
            if name is not None and name not in fitting
        ]

    def differences(self, earlier: "GateRules") -> list[str]:
        """Return one sentence for each rule that differs from an earlier revision."""
        changes = [
            f"{label}: {_as_text(getattr(earlier, name), empty)} → {_as_text(getattr(self, name), empty)}"
            for name, label, empty in _FIELDS
            if getattr(self, name) != getattr(earlier, name)
        ]
        for kind in ("floors", "slices"):
            before = {rule.gate: rule for rule in getattr(earlier, kind)}
            after = {rule.gate: rule for rule in getattr(self, kind)}
            changes += [f"{gate}: {_limits(before[gate])} → removed" for gate in before if gate not in after]
            changes += [f"{gate}: added, {_limits(after[gate])}" for gate in after if gate not in before]
            changes += [
                f"{gate}: {_limits(before[gate])} → {_limits(after[gate])}"
                for gate in after
                if gate in before and before[gate] != after[gate]
            ]
        return changes


_FIELDS: tuple[tuple[Literal["metric", "tolerance", "latency_p95_ms"], str, str], ...] = (
    ("metric", "metric", "the objective"),
    ("tolerance", "tolerance", ""),
    ("latency_p95_ms", "latency p95 in ms", "no limit"),
)


def _as_text(value: Any, empty: str) -> str:
    return empty if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _limits(rule: Floor | Slice) -> str:
    limit = "no limit" if rule.limit is None else f"limit {rule.limit:g}"
    return f"{limit}, at least {rule.min_rows} rows" if isinstance(rule, Slice) else limit
