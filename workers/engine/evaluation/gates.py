"""Defines the gates of a promotion as pure functions of signatures and metrics. Needs no model."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jobs.contracts.data import Task
from jobs.contracts.gates import Floor, Slice
from jobs.contracts.measures import TEST_METRICS
from jobs.contracts.search import Direction
from jobs.contracts.signature import Signature, TensorSpec
from workers.engine.evaluation.classification import probabilities
from workers.engine.evaluation.comparison import Value, constant_prediction, gain, measure
from workers.engine.report import finite_or_none

State = Literal["passed", "failed", "skipped", "not_evaluated"]


@dataclass(frozen=True)
class Alternative:
    """One comparison of a gate that passes if any of several does.

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
    """Result of one gate.

    Attributes:
        name: of the gate.
        state: of the gate.
        value: the challenger's value.
        limit: the value it was compared with.
        champion: the champion's value.
        detail: a message for users.
        rule: the rule that was applied, with its numbers.
        metric: the name of the metric that `value` is of; empty if it is of none.
        direction: its better direction.
        low: lower bound of the value's 95 % interval.
        high: upper bound.
        rows: the number of test rows.
        alternatives: the comparisons of which one must pass, if there are several.
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
            {key: finite_or_none(item) if isinstance(item, float) else item for key, item in one.items()}
            for one in body["alternatives"]
        ]
        return body


class Shown(NamedTuple):
    """A metric of the challenger, as the result of its gate shows it."""

    metric: str
    direction: Direction
    value: Value
    rows: int

    @property
    def bound(self) -> str:
        """Return how the value must relate to its limit."""
        return "at least" if self.direction == "max" else "at most"

    def result(self, name: str, state: State, **more: Any) -> GateOutcome:
        """Return the result of a gate; `more` are further attributes."""
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


def state_of(passed: bool) -> State:
    """Return the state of a gate that was evaluated: `passed` or `failed`."""
    return "passed" if passed else "failed"


def signature_gate(challenger: Signature, champion: Signature | None) -> GateOutcome:
    """Pass if the challenger accepts all inputs of the champion, and answers in the same form.

    Outputs are compared by name, also the only one: clients of the Open Inference Protocol read it by name.
    """
    rule = "all inputs of the champion are accepted, and the outputs have the same names and form"
    if champion is None:
        return GateOutcome("signature", "skipped", detail="there is no champion to compare with", rule=rule)
    problems = _input_problems(challenger, champion) + _output_problems(challenger, champion)
    detail = "; ".join(problems) or "compatible with the champion"
    return GateOutcome("signature", state_of(not problems), detail=detail, rule=rule)


def _input_problems(challenger: Signature, champion: Signature) -> list[str]:
    accepted = {tensor.name: tensor for tensor in challenger.inputs}
    sent = {tensor.name: tensor for tensor in champion.inputs}
    problems = [f"input {name!r} is new" for name in accepted if name not in sent]
    for name, tensor in sent.items():
        if name not in accepted:
            problems.append(f"input {name!r} is missing")
        elif not _accepts(accepted[name], tensor):
            problems.append(f"input {name!r} was {_shown(tensor)}, is {_shown(accepted[name])}")
    return problems


def _output_problems(challenger: Signature, champion: Signature) -> list[str]:
    if len(challenger.outputs) != len(champion.outputs):
        return [f"there were {len(champion.outputs)} outputs, there are {len(challenger.outputs)}"]
    sent = {tensor.name: tensor for tensor in challenger.outputs}
    read = {tensor.name: tensor for tensor in champion.outputs}
    if sent.keys() != read.keys():
        return [f"the outputs were {', '.join(read)}; they are {', '.join(sent)}"]
    return [
        f"output {name!r} was {_shown(old)}, is {_shown(sent[name])}"
        for name, old in read.items()
        if (sent[name].dtype, sent[name].shape) != (old.dtype, old.shape)
    ]


def _accepts(tensor: TensorSpec, sent: TensorSpec) -> bool:
    """Return whether `tensor` accepts all inputs of `sent`: its sizes are equal or variable."""
    return (
        tensor.dtype == sent.dtype
        and len(tensor.shape) == len(sent.shape)
        and all(own in (None, size) for own, size in zip(tensor.shape, sent.shape, strict=True))
    )


def _shown(tensor: TensorSpec) -> str:
    return f"{tensor.dtype}[{', '.join('any' if size is None else str(size) for size in tensor.shape)}]"


def reaches(value: float, limit: float, direction: Direction) -> bool:
    """Return whether a value is at least as good as a limit; an undefined value is not."""
    return value >= limit if direction == "max" else value <= limit


def metric_gate(
    metric: str, direction: Direction, challenger: Value, champion: float, tolerance: float, rows: int
) -> GateOutcome:
    """Pass if the challenger is not worse than the champion by more than the tolerance on the same test rows.

    Args:
        metric: its name.
        direction: its better direction.
        challenger: the challenger's value.
        champion: the champion's value; NaN if undefined.
        tolerance: tolerated loss: of the metric itself if higher values are better (0.01 is one point of
            accuracy), else as a share of the champion's value.
        rows: the number of test rows.
    """
    shown = Shown(metric, direction, challenger, rows)
    if not np.isfinite(champion):
        detail = f"the champion's test {metric} is undefined"
        return shown.result("metric", "not_evaluated", detail=detail)
    limit = _tolerated(champion, direction, tolerance)
    rule = (
        f"{metric} on the test rows {shown.bound} {limit:.4g}: the champion's {champion:.4g} "
        f"{'minus' if direction == 'max' else 'plus'} the tolerance of "
        f"{_tolerance_text(tolerance, direction)}"
    )
    passed = reaches(challenger.value, limit, direction)
    return shown.result("metric", state_of(passed), limit=limit, champion=champion, rule=rule)


def _tolerated(champion: float, direction: Direction, tolerance: float) -> float:
    # The share is of the size of the value, so that the limit of a negative value is not a better one.
    return champion - tolerance if direction == "max" else champion + tolerance * abs(champion)


def _tolerance_text(tolerance: float, direction: Direction) -> str:
    return f"{tolerance:g}" if direction == "max" else f"{100 * tolerance:g} %"


def floor_gate(floor: Floor, direction: Direction, challenger: Value, rows: int) -> GateOutcome:
    """Pass if a metric on all test rows reaches the floor."""
    shown = Shown(floor.metric, direction, challenger, rows)
    rule = f"{floor.metric} on the test rows {shown.bound} {floor.limit:.4g}"
    passed = reaches(challenger.value, floor.limit, direction)
    return shown.result(floor.gate, state_of(passed), limit=floor.limit, rule=rule)


def slice_gate(
    one: Slice,
    metric: str,
    direction: Direction,
    challenger: Value,
    champion: float | None,
    tolerance: float,
    rows: int,
) -> GateOutcome:
    """Pass if a metric on the rows of a slice reaches its limit and that of the champion.

    Args:
        one: the slice.
        metric: its metric, or the one of the gates.
        direction: its better direction.
        challenger: the challenger's value on these rows.
        champion: the champion's value on these rows; None or NaN if there is none.
        tolerance: see `metric_gate`.
        rows: the number of these rows.
    """
    shown = Shown(metric, direction, challenger, rows)
    limits: list[tuple[float, str]] = []
    if one.limit is not None:
        limits.append((one.limit, "set by the gates"))
    if champion is not None and np.isfinite(champion):
        why = f"the champion's {champion:.4g} with the tolerance of {_tolerance_text(tolerance, direction)}"
        limits.append((_tolerated(champion, direction, tolerance), why))
    where = f"{metric} on the {rows:,} test rows with {one.column} = {one.value}"
    if not limits:
        detail = "there is neither a champion nor a limit"
        return shown.result(one.gate, "skipped", rule=f"{where} is only shown", detail=detail)
    limit, why = (max if direction == "max" else min)(limits, key=lambda pair: pair[0])
    passed = reaches(challenger.value, limit, direction)
    rule = f"{where} {shown.bound} {limit:.4g}, {why}"
    known = champion if champion is not None and np.isfinite(champion) else None
    return shown.result(one.gate, state_of(passed), limit=limit, champion=known, rule=rule)


def latency_gate(p95: float, ceiling: float | None, detail: str) -> GateOutcome:
    """Pass if the 95th percentile of the time for one row is not above the ceiling, if there is one."""
    if ceiling is None:
        rule = "the time for one row is measured; no ceiling is set"
        return GateOutcome("latency", "passed", p95, detail=detail, rule=rule)
    rule = f"the 95th percentile of the time for one row at most {ceiling:g} ms"
    return GateOutcome("latency", state_of(p95 <= ceiling), p95, ceiling, detail=detail, rule=rule)


def baseline_gate(
    metric: str, task: Task, y_train: npt.ArrayLike, y_test: npt.ArrayLike, y_pred: npt.ArrayLike
) -> GateOutcome:
    """Pass if the model is significantly better than the best constant prediction.

    The constant is the class frequencies of the training rows, or the mean of their targets. For classes, a
    significant gain in log loss also passes: if one class has 99 % of the rows, accuracy can hardly improve.
    Precision and recall of a constant can be 1, so ROC AUC takes their place.

    Args:
        metric: the metric of the gates.
        task: kind of prediction.
        y_train: targets of the training rows.
        y_test: targets of the test rows.
        y_pred: predictions for the test rows.
    """
    truth, guess = np.asarray(y_test), np.asarray(y_pred)
    classes = 0
    if task in ("binary", "multiclass"):
        classes = max(probabilities(guess).shape[1], int(max(truth.max(), np.asarray(y_train).max())) + 1)
    constant = constant_prediction(task, np.asarray(y_train), len(truth), classes)
    first = "roc_auc" if metric in ("precision", "recall") else metric
    names = [first] if task == "regression" else list(dict.fromkeys((first, "log_loss")))
    compared = [_against_constant(name, task, truth, guess, constant) for name in names]
    chosen = next((one for one in compared if one.passed), compared[0])
    also = "".join(f"; a gain in {name} also counts" for name in names[1:])
    rule = (
        f"{first} on the test rows better than that of the best constant prediction "
        f"({'mean of the targets' if task == 'regression' else 'class frequencies'} of the training rows): "
        f"the whole 95 % interval of the gain above 0{also}"
    )
    return GateOutcome(
        "better_than_baseline",
        state_of(chosen.passed),
        finite_or_none(chosen.value),
        finite_or_none(chosen.limit),
        detail="; ".join(one.sentence() for one in compared),
        metric=chosen.metric,
        direction=chosen.direction,
        rows=len(truth),
        rule=rule,
        alternatives=tuple(compared),
    )


def _against_constant(
    name: str, task: Task, truth: npt.NDArray[Any], guess: npt.NDArray[Any], constant: npt.NDArray[Any]
) -> Alternative:
    direction = TEST_METRICS[name][1]
    better = gain(name, task, truth, guess, constant, sign=1 if direction == "max" else -1)
    of = measure(name, task)
    return Alternative(
        metric=name,
        direction=direction,
        value=of(truth, guess),
        limit=of(truth, constant),
        gain=better.value,
        low=better.low,
        high=better.high,
        # An undefined gain is none, even if some resamples have one.
        passed=bool(np.isfinite(better.value) and better.low > 0),
    )


def finite_gate(outputs: list[npt.NDArray[Any]]) -> GateOutcome:
    """Pass if all predictions are finite."""
    bad = sum(int((~np.isfinite(output)).sum()) for output in outputs)
    return GateOutcome(
        "finite",
        state_of(bad == 0),
        float(bad),
        0.0,
        detail="predictions that are not finite",
        rule="no prediction for the test rows is NaN or infinite",
    )
