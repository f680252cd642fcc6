"""Defines the gates of a promotion as pure functions of signatures and metrics. Needs no model."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jobs.contracts.data import Task
from jobs.contracts.signature import Signature, TensorSpec
from workers.engine.evaluation.classification import TINY, predicted_classes, row_losses
from workers.engine.evaluation.evaluate import primary_metric
from workers.engine.evaluation.intervals import RowIndices, bootstrap
from workers.engine.evaluation.regression import columns

Floats = npt.NDArray[np.float64]
State = Literal["passed", "failed", "skipped", "not_evaluated"]


@dataclass(frozen=True)
class GateResult:
    """Result of one gate.

    Attributes:
        name: of the gate.
        state: of the gate.
        value: the challenger's value.
        limit: the value it was compared with.
        champion: the champion's value.
        detail: a message for users.
    """

    name: str
    state: State
    value: float | str | None = None
    limit: float | str | None = None
    champion: float | str | None = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all attributes as a JSON object."""
        return asdict(self)


def state_of(passed: bool) -> State:
    """Return the state of a gate that was evaluated: `passed` or `failed`."""
    return "passed" if passed else "failed"


def signature_gate(challenger: Signature, champion: Signature | None) -> GateResult:
    """Pass if the challenger accepts all inputs of the champion and its outputs have the same form."""
    if champion is None:
        return GateResult("signature", "skipped", detail="there is no champion to compare with")
    problems = _input_problems(challenger, champion) + _output_problems(challenger, champion)
    return GateResult(
        "signature", state_of(not problems), detail="; ".join(problems) or "compatible with the champion"
    )


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
    return [
        f"output {old.name!r} was {_shown(old)}, is {_shown(new)}"
        for new, old in zip(challenger.outputs, champion.outputs, strict=True)
        if (new.dtype, new.shape) != (old.dtype, old.shape)
    ]


def _accepts(tensor: TensorSpec, sent: TensorSpec) -> bool:
    """Return whether `tensor` accepts all inputs of `sent`: its sizes are equal or variable."""
    same_rank = len(tensor.shape) == len(sent.shape)
    return (
        tensor.dtype == sent.dtype
        and same_rank
        and all(own in (None, size) for own, size in zip(tensor.shape, sent.shape, strict=True))
    )


def _shown(tensor: TensorSpec) -> str:
    return f"{tensor.dtype}[{', '.join('any' if size is None else str(size) for size in tensor.shape)}]"


def metric_gate(task: Task, challenger: float | None, champion: float | None, delta: float) -> GateResult:
    """Pass if the challenger is not worse than the champion by more than `delta` on the same test rows.

    Args:
        task: chooses the metric: accuracy, or the root mean squared error for regression.
        challenger: the challenger's value; None if undefined.
        champion: the champion's value; None if undefined.
        delta: tolerated loss: of accuracy (0.01 is one point), or as a share of the champion's error for
            regression.
    """
    metric, direction = primary_metric(task)
    if champion is None:
        return GateResult(
            "metric", "not_evaluated", challenger, detail=f"the champion's test {metric} is undefined"
        )
    limit = champion - delta if direction == "max" else champion * (1 + delta)
    if challenger is None:
        return GateResult("metric", "failed", None, limit, champion, f"test {metric} is undefined")
    passed = challenger >= limit if direction == "max" else challenger <= limit
    sign = "at least" if direction == "max" else "at most"
    return GateResult(
        "metric", state_of(passed), challenger, limit, champion, f"test {metric}, {sign} {limit:.4g}"
    )


def baseline_gate(
    task: Task, y_train: npt.ArrayLike, y_test: npt.ArrayLike, y_pred: npt.ArrayLike, seed: int
) -> GateResult:
    """Pass if the model is significantly better than the best constant prediction.

    The constant is the training part's most frequent class, or its mean for regression. The bootstrap
    resamples paired differences, so rows that are hard for both cancel out. For classes, a significant gain
    in log loss over the class frequencies also passes: if one class has 99 % of the rows, accuracy can hardly
    improve.

    Args:
        task: kind of prediction.
        y_train: targets of the training rows.
        y_test: targets of the test rows.
        y_pred: predictions for the test rows.
        seed: of the bootstrap.
    """
    truth, train = np.asarray(y_test), np.asarray(y_train)
    if task == "regression":
        return _compare_with_mean(train, truth, np.asarray(y_pred), seed)
    if task == "multilabel":
        constant = (train.mean(axis=0) > 0.5).astype(int)
        right = ((np.asarray(y_pred) > 0.5) == (truth > 0.5)).mean(axis=1)
        base = (constant == (truth > 0.5)).mean(axis=1)
        return _accuracy_result(right, base, _lower_bound(right - base, seed) > 0)
    labels = truth.reshape(-1).astype(np.int64)
    counts = np.bincount(train.reshape(-1).astype(np.int64), minlength=int(labels.max()) + 1)
    right = (predicted_classes(y_pred) == labels).astype(np.float64)
    base = (labels == counts.argmax()).astype(np.float64)
    prior = -np.log(np.clip(counts[labels] / counts.sum(), TINY, 1.0))
    beats = _lower_bound(right - base, seed) > 0 or _lower_bound(prior - row_losses(labels, y_pred), seed) > 0
    return _accuracy_result(right, base, beats)


def _accuracy_result(right: Floats, base: Floats, beats: bool) -> GateResult:
    detail = f"test accuracy, compared with {base.mean():.4g} for the best constant prediction"
    return GateResult(
        "better_than_baseline", state_of(beats), float(right.mean()), float(base.mean()), None, detail
    )


def _compare_with_mean(
    train: npt.NDArray[Any], truth: npt.NDArray[Any], guess: npt.NDArray[Any], seed: int
) -> GateResult:
    mean = columns(train).mean(axis=0)
    base = ((columns(truth) - mean) ** 2).mean(axis=1)
    ours = ((columns(truth) - columns(guess)) ** 2).mean(axis=1)
    value, limit = float(np.sqrt(ours.mean())), float(np.sqrt(base.mean()))
    detail = f"test rmse, compared with {limit:.4g} for the mean of the training targets"
    shown = value if np.isfinite(value) else None
    return GateResult(
        "better_than_baseline", state_of(_lower_bound(base - ours, seed) > 0), shown, limit, None, detail
    )


def _lower_bound(difference: Floats, seed: int) -> float:
    """Return the lower bound of the mean difference's 95 % interval; minus infinity if undefined."""
    if not np.isfinite(difference).all():
        return -np.inf

    def mean(rows: RowIndices) -> float:
        return float(difference[rows].mean())

    return bootstrap(mean, len(difference), seed)[0]


def finite_gate(outputs: list[npt.NDArray[Any]]) -> GateResult:
    """Pass if all predictions are finite."""
    bad = sum(int((~np.isfinite(output)).sum()) for output in outputs)
    return GateResult("finite", state_of(bad == 0), float(bad), 0.0, None, "predictions that are not finite")
