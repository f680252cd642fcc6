"""Declares the spec section `data`: the data set, its columns' roles, and its split."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen
from jobs.spec.data.columns import ColumnOptions, TextEncode

Task = Literal["binary", "multiclass", "multilabel", "regression"]
RowsWithoutTarget = Literal["refuse", "leave_out"]
"""Whether a table with rows that have no target is refused, or read without them."""
MAX_WINDOW = 1_024
"""The most rows in a window."""
MAX_HORIZON = 100_000
TARGET_GAPS = "target_gaps"
"""The error code for a file that is refused because of such rows."""
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class Split(Frozen):
    """Fractions of all rows for validation and test; the rest is the training part."""

    validation: float = Field(default=0.2, gt=0, lt=1)
    test: float = Field(default=0.2, gt=0, lt=1)
    # NumPy accepts 32 bits.
    seed: int = Field(default=0, ge=0, lt=2**32)
    stratify: bool = True
    group: str | None = Field(default=None, description="column whose equal values stay in one part")
    column: str | None = Field(default=None, description="column that names each row's part")
    time: str | None = Field(default=None, description="column to split along: oldest rows train")
    use_roles: bool = Field(
        default=True,
        # Digests of earlier specs stay the same.
        exclude_if=lambda value: value,
        description="without group, column and time: the column with the role split, time or group decides",
    )

    @model_validator(mode="after")
    def _leaves_rows_to_train(self) -> Self:
        if self.validation + self.test >= 1:
            raise ValueError(
                f"validation {self.validation} and test {self.test} leave nothing to train on; "
                "their sum must stay below 1"
            )
        # Each of them alone determines the part of every row.
        if sum(name is not None for name in (self.group, self.column, self.time)) > 1:
            raise ValueError("choose one of group, column and time")
        return self


class Window(Frozen):
    """Which rows are the input of a prediction, and which row has its target."""

    rows: int = Field(default=16, ge=1, le=MAX_WINDOW, description="of a window")
    horizon: int = Field(
        default=0,
        ge=0,
        le=MAX_HORIZON,
        description="how many rows after the window's last one its target is; 0: in the last row itself",
    )
    time: str | None = Field(
        default=None, description="column that orders the rows; that of the split or with this role if absent"
    )
    group: str | None = Field(
        default=None,
        description="column whose values have windows of their own, such as a sensor; that of the split or "
        "with this role if absent",
    )


class DataSpec(Frozen):
    """A dataset version, the roles of its columns and its split."""

    dataset: Slug
    dataset_version: int | None = Field(default=None, ge=1, description="the newest ready one if absent")
    target: str | None = None
    features: tuple[str, ...] | None = None
    task: Task | None = Field(default=None, description="from the data set if absent")
    preprocessing: dict[str, ColumnOptions] = Field(
        default_factory=dict,
        max_length=1_000,
        exclude_if=lambda options: not options,
        description="by column: what replaces missing numbers, and how words become numbers",
    )
    texts: TextEncode | None = Field(
        default=None,
        # Digests of earlier specs stay the same.
        exclude_if=lambda value: value is None,
        description="encoding of texts without an option of their own; as the template needs if absent",
    )
    window: Window | None = Field(
        default=None,
        # Digests of earlier specs stay the same.
        exclude_if=lambda value: value is None,
        description="of a table: several rows in the order of time are the input of one prediction",
    )
    split: Split = Split()
