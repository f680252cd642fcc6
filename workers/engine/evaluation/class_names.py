"""Compares the classes of a model with those of rows by name: an output's position means nothing by itself.

Two versions of a data set may sort the same classes in another order, or have as many others.
"""

from collections.abc import Sequence

from workers.engine.arrays import Array
from workers.engine.errors import BadModel

MAX_NAMED = 5


class OtherClasses(BadModel):
    """The model predicts other classes than the rows have; the message names both."""


def in_order_of(rows: Sequence[str], model: Sequence[str] | None, y_pred: Array) -> Array:
    """Return predictions whose columns have the order of the rows' classes.

    Args:
        rows: the names of the rows' classes, labels or outputs, in their order; empty if they have none.
        model: the same for the model; None if they are unknown, so that it is taken to have the same ones.
        y_pred: its predictions, (rows, …); for two classes also the probability of the second alone.

    Raises:
        OtherClasses: the names are not the same ones.
    """
    if model is None or list(model) == list(rows):
        return y_pred
    if sorted(model) != sorted(rows):
        raise OtherClasses(f"it has {_named(model, rows)}, the test rows have {_named(rows, model)}")
    width = y_pred.shape[-1] if y_pred.ndim > 1 else 1
    if width == len(rows):
        return y_pred[..., [list(model).index(name) for name in rows]]
    # The other order of two classes. Any other width is refused by the evaluation.
    return 1 - y_pred if width == 1 and len(rows) == 2 else y_pred


def first_names(names: Sequence[str], others: Sequence[str]) -> str:
    """Return the first names for a message, those that `others` lack before the rest if there are many."""
    if len(names) <= MAX_NAMED:
        return ", ".join(names)
    shown = sorted(names, key=set(others).__contains__)[:MAX_NAMED]
    return f"{', '.join(shown)} and {len(names) - MAX_NAMED:,} more"


def _named(names: Sequence[str], others: Sequence[str]) -> str:
    return f"the classes {first_names(names, others)}" if names else "no classes"
