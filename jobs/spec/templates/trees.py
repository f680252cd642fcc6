"""Registers the template `trees`: scikit-learn's gradient boosting and random forests."""

from typing import Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen
from jobs.spec.exports import QUANTIZATIONS
from jobs.spec.templates.info import OPTIMIZER_FIELDS, TemplateInfo

Method = Literal["boosting", "random_forest", "extra_trees"]
MAX_DEPTH = 32
"""A saved model follows each tree for as many steps as the deepest tree has levels."""
ONLY_BOOSTING = ("shrinkage", "l2")
"""Arguments that forests do not have."""
_WHOLE = "each tree is grown on all training rows"


class TreesArgs(Frozen):
    """Input → the sum (boosting) or mean (forests) of as many trees as epochs; each output has its own."""

    method: Method = Field(default="boosting", title="Method")
    leaves: int = Field(
        default=0,
        ge=0,
        le=65_536,
        title="Leaves",
        description="Most of one tree. 0: 31 for boosting, no limit for forests.",
    )
    depth: int = Field(default=MAX_DEPTH, ge=1, le=MAX_DEPTH, title="Depth", description="Most of one tree.")
    min_rows: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        title="Rows in a leaf",
        description="At least. 0: 20 for boosting, 1 for forests.",
    )
    features: float = Field(
        default=0.0,
        ge=0,
        le=1,
        title="Share of features",
        description="Tried at each split. 0: all; for forests of classes, the square root of their number.",
    )
    shrinkage: float = Field(
        default=0.1, gt=0, le=1, title="Shrinkage", description="Learning rate of boosting."
    )
    l2: float = Field(default=0.0, ge=0, title="L2 penalty")

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        for name in ONLY_BOOSTING:
            default = type(self).model_fields[name].default
            if self.method != "boosting" and getattr(self, name) != default:
                raise ValueError(f"{name} has no effect on {self.method}; only boosting has it")
        # One leaf would be a constant.
        if self.leaves == 1:
            raise ValueError("leaves is 1; a tree needs 2 or more, or 0 for the method's default")
        return self


INFO = TemplateInfo(
    name="trees",
    label="Trees",
    help="gradient boosting or a random forest: the baseline for tables",
    arguments=TreesArgs,
    preparation="workers.engine.training.trees:prepare_trees",
    by_gradient=False,
    ranges={
        "method": {"kind": "choice", "values": ["boosting", "random_forest", "extra_trees"]},
        # With 0, so that a search can begin with the defaults.
        "leaves": {"kind": "choice", "values": [0, 7, 15, 63, 127]},
        "depth": {"kind": "int", "min": 2, "max": MAX_DEPTH, "sampling": "log"},
        "min_rows": {"kind": "choice", "values": [0, 1, 5, 10, 50]},
        "features": {"kind": "choice", "values": [0.0, 0.2, 0.4, 0.6, 0.8]},
        "shrinkage": {"kind": "float", "min": 0.02, "max": 0.3, "sampling": "log"},
        "l2": {"kind": "float", "min": 1e-3, "max": 10.0, "sampling": "log"},
    },
    searched=("leaves", "min_rows", "features", "shrinkage"),
    initial_arguments=("method",),
    # Each input is looked at by itself: very many, such as pixels, need minutes and gigabytes.
    most_inputs=4_096,
    unused={
        "/mesh": "its trees are grown on the CPU",
        "/resources/gpu": "its trees are grown on the CPU",
        "/precision": "its trees are grown in float64 and saved in float32",
        "/fit/batch_size": _WHOLE,
        "/fit/shuffle": _WHOLE,
        "/fit/steps_per_execution": _WHOLE,
        "/fit/loss": "its trees minimize the default loss of the task",
        "/fit/augmentation": _WHOLE,
        **dict.fromkeys(OPTIMIZER_FIELDS, "its trees are not trained by gradients of weights"),
    },
    refused={
        "/after/quantize": "; ".join(
            f"{entry.label} is for {entry.quantizes}, and trees have none" for entry in QUANTIZATIONS.values()
        )
    },
)
