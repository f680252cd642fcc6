"""Defines the payload, the result and the task of a dry build."""

from typing import Literal

from pydantic import Field

from jobs.kinds.base import Payload, Result
from jobs.messages.task import DatasetFile, Task
from jobs.spec.checks.dry_build import BuiltModel, DataShape
from jobs.spec.data.columns import TextEncode
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.data import DataSpec


class DryBuildPayload(Payload):
    """The model to build, and its data's shape.

    Attributes:
        model: without values for hyperparameters.
        shape: None if it is known only after the data are read.
        data: the columns and their encoding, which determine the shape then.
        texts: the encoding for texts that have no option themselves.
        key: the same for equal models and data.
    """

    model: CodeModel
    shape: DataShape | None = None
    data: DataSpec
    texts: TextEncode = "words"
    key: str

    def code_digest(self) -> str | None:
        """Return the digest of the code version that is built."""
        return self.model.code_digest


class DryBuildResult(Result):
    """The model that was built."""

    built: BuiltModel


class DryBuildTask(Task):
    """Build the model of a code entry with all values that reveal hyperparameters."""

    kind: Literal["dry_build"] = "dry_build"
    model: CodeModel
    shape: DataShape | None
    data: DataSpec
    texts: TextEncode
    dataset: DatasetFile | None = Field(description="read to find the shape; None if it is known")
