"""Defines the payload, the result and the task of a split's overview."""

from typing import Literal

from jobs.kinds.base import Payload, Result
from jobs.messages.task import DatasetFile, Task
from jobs.spec.sections.data import Split


class SplitOverviewPayload(Payload):
    """The split of a dataset version whose parts are compared.

    Attributes:
        split: with the column that a role decides.
        key: identifies the split among those of the version.
    """

    split: Split
    key: str


class SplitOverviewResult(Result):
    """Empty: the overview is a file of the job."""


class SplitOverviewTask(Task):
    """Compare the parts of a split of a dataset version."""

    kind: Literal["split_overview"] = "split_overview"
    dataset: DatasetFile
    split: Split
