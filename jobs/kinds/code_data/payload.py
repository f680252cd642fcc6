"""Defines the payload, the result and the task with which own code loads data."""

from typing import Literal

from pydantic import Field

from jobs.kinds.base import Payload, Result
from jobs.messages.task import Task
from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from jobs.spec.sections.code_model import ENTRY
from jobs.spec.sections.data import Slug
from jobs.spec.sections.data import Task as PredictionTask


class CodeDataPayload(Payload):
    """The function that is called, and the data set that gets its rows as a version.

    Attributes:
        code: the code version's digest.
        entry: `load_data`; after a path and a colon if several files have such a function.
        dataset: the data set's slug; it is created if the project has none.
        prediction: the kind of prediction; None infers it from the targets.
        made: the dataset version that the job has made, by primary key.
    """

    code: str
    entry: str = Field(default="load_data", pattern=ENTRY)
    dataset: Slug
    prediction: PredictionTask | None = None
    made: int | None = None

    def code_digest(self) -> str | None:
        """Return the digest of the code version whose function is called."""
        return self.code


class CodeDataResult(Result):
    """The file with the rows that the code has returned.

    Attributes:
        source: its format, one of those for uploads.
        target: the name of the target column.
        part: the name of the column that assigns rows to parts; None if the code has made no parts.
        rows: the number of rows by part.
    """

    source: Literal["npz", "parquet"]
    target: str = Field(max_length=500)
    part: str | None = Field(default=None, max_length=500)
    rows: dict[Literal["train", "validation", "test"], int]


class CodeDataTask(Task):
    """Call a function in own code, check its rows, and write them as a file for a data set."""

    kind: Literal["code_data"] = "code_data"
    entry: str
    prediction: PredictionTask | None = None
    limits: FileLimits = DEFAULT_LIMITS
