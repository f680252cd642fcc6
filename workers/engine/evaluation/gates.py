"""The judgements of a promotion, each a pure function of numbers: no model, no Keras."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jobs.contracts.data import Task
from jobs.contracts.signature import Signature, TensorSpec
from workers.engine.evaluation.classification import TINY, predicted_classes, row_losses
from workers.engine.evaluation.evaluate import primary_metric
from workers.engine.evaluation.intervals import Rows, bootstrap
from workers.engine.evaluation.regression import columns

Floats = npt.NDArray[np.float64]
State = Literal["passed", "failed", "skipped", "not_evaluated"]


@dataclass(frozen=True)
class Gate:
    """One judgement. `limit` is what `value` was held against, `champion` the champion's own value."""

    name: str
    state: State
    value: float | str | None = None
    limit: float | str | None = None
    champion: float | str | None = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the gate as the promotion shows it."""
        return asdict(self)


def verdict(passed: bool) -> State:
    """Return the state of a gate that was evaluated."""
    return "passed" if passed else "failed"


def signature_gate(challenger: Signature, champion: Signature | None) -> Gate:
    """Pass if whatever clients send to the champion the challenger takes, and answers in the same form."""
    if champion is None:
        return Gate("signature", "skipped", detail="there is no champion to be compatible with")
    problems = _input_problems(challenger, champion) + _output_problems(challenger, champion)
    return Gate(
        "signature", verdict(not problems), detail="; ".join(problems) or "compatible with the champion"
    )


def _input_problems(challenger: Signature, champion: Signature) -> list[str]:
    takes = {tensor.name: tensor for tensor in challenger.inputs}
    sent = {tensor.name: tensor for tensor in champion.inputs}
    problems = [f"input {name!r} is new" for name in takes if name not in sent]
    for name, tensor in sent.items():
        if name not in takes:
            problems.append(f"input {name!r} is gone")
        elif not _accepts(takes[name], tensor):
            problems.append(f"input {name!r} was {_shown(tensor)}, is {_shown(takes[name])}")
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
    """Say whether `tensor` takes all that `sent` took: the same, or any size where it was fixed."""
    same_rank = len(tensor.shape) == len(sent.shape)
    return (
        tensor.dtype == sent.dtype
        and same_rank
        and all(own in (None, size) for own, size in zip(tensor.shape, sent.shape, strict=True))
    )


def _shown(tensor: TensorSpec) -> str:
    return f"{tensor.dtype}[{', '.join('any' if size is None else str(size) for size in tensor.shape)}]"


def metric_gate(task: Task, challenger: float | None, champion: float | None, delta: float) -> Gate:
    """Pass if the challenger is not worse than the champion by more than `delta` on the same test rows.

    Args:
        task: chooses the metric: accuracy, or for regression the root mean squared error.
        challenger: its value; None where it is undefined.
        champion: the champion's value.
        delta: points of accuracy; for regression a share of the champion's error.
    """
    metric, direction = primary_metric(task)
    if champion is None:
        return Gate(
            "metric", "not_evaluated", challenger, detail=f"the champion's test {metric} is undefined"
        )
    limit = champion - delta if direction == "max" else champion * (1 + delta)
    if challenger is None:
        return Gate("metric", "failed", None, limit, champion, f"test {metric} is undefined")
    passed = challenger >= limit if direction == "max" else challenger <= limit
    sign = "at least" if direction == "max" else "at most"
    return Gate("metric", verdict(passed), challenger, limit, champion, f"test {metric}, {sign} {limit:.4g}")


def baseline_gate(
    task: Task, y_train: npt.ArrayLike, y_test: npt.ArrayLike, y_pred: npt.ArrayLike, seed: int
) -> Gate:
    """Pass if the model beats the best constant answer by more than chance explains.

    The constant is the training part's most frequent class (its mean, for regression). Rows are
    resampled in pairs, so what is hard for both cancels out. For classes, a clear gain in log loss
    over the class frequencies counts too: where one class has 99 % of the rows, no accuracy can win.
    """
    truth, train = np.asarray(y_test), np.asarray(y_train)
    if task == "regression":
        return _beats_mean(train, truth, np.asarray(y_pred), seed)
    if task == "multilabel":
        constant = (train.mean(axis=0) > 0.5).astype(int)
        right = ((np.asarray(y_pred) > 0.5) == (truth > 0.5)).mean(axis=1)
        base = (constant == (truth > 0.5)).mean(axis=1)
        return _shares(right, base, _gain(right - base, seed) > 0)
    labels = truth.reshape(-1).astype(np.int64)
    counts = np.bincount(train.reshape(-1).astype(np.int64), minlength=int(labels.max()) + 1)
    right = (predicted_classes(y_pred) == labels).astype(np.float64)
    base = (labels == counts.argmax()).astype(np.float64)
    prior = -np.log(np.clip(counts[labels] / counts.sum(), TINY, 1.0))
    beats = _gain(right - base, seed) > 0 or _gain(prior - row_losses(labels, y_pred), seed) > 0
    return _shares(right, base, beats)


def _shares(right: Floats, base: Floats, beats: bool) -> Gate:
    detail = f"test accuracy against {base.mean():.4g} of always giving the most frequent answer"
    return Gate("better_than_baseline", verdict(beats), float(right.mean()), float(base.mean()), None, detail)


def _beats_mean(train: npt.NDArray[Any], truth: npt.NDArray[Any], guess: npt.NDArray[Any], seed: int) -> Gate:
    mean = columns(train).mean(axis=0)
    base = ((columns(truth) - mean) ** 2).mean(axis=1)
    ours = ((columns(truth) - columns(guess)) ** 2).mean(axis=1)
    value, limit = float(np.sqrt(ours.mean())), float(np.sqrt(base.mean()))
    detail = f"test rmse against {limit:.4g} of always giving the mean"
    shown = value if np.isfinite(value) else None
    return Gate("better_than_baseline", verdict(_gain(base - ours, seed) > 0), shown, limit, None, detail)


def _gain(difference: Floats, seed: int) -> float:
    """Return the lower end of the mean difference's 95 % interval; minus infinity where undefined."""
    if not np.isfinite(difference).all():
        return -np.inf

    def mean(rows: Rows) -> float:
        return float(difference[rows].mean())

    return bootstrap(mean, len(difference), seed)[0]


def finite_gate(outputs: list[npt.NDArray[Any]]) -> Gate:
    """Pass if every number of every prediction is finite."""
    bad = sum(int((~np.isfinite(output)).sum()) for output in outputs)
    return Gate("finite", verdict(bad == 0), float(bad), 0.0, None, "predictions that are not finite")
