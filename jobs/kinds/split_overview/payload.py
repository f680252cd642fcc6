"""Defines the payload, the result and the task of a split overview."""

from typing import Literal

from jobs.kinds.base import Payload, Result
from jobs.messages.task import DatasetFile, Task
from jobs.spec.sections.data import Split


class SplitOverviewPayload(Payload):
    """The split whose parts are compared, in a dataset version.

    Attributes:
        split: with the column that a role decides.
        key: identifies the split among the version's splits.
    """

    split: Split
    key: str


class SplitOverviewResult(Result):
    """Empty: the job stores the overview as a file."""


class SplitOverviewTask(Task):
    """Compare the parts that a split makes from a dataset version."""

    kind: Literal["split_overview"] = "split_overview"
    dataset: DatasetFile
    split: Split
