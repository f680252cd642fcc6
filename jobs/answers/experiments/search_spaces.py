"""Declares the answers about search spaces of other tools."""

from typing import Literal

from pydantic import Field

from jobs.answers.base import Answer, Stored
from jobs.spec.formats.result import Format
from jobs.spec.json_types import JsonObject
from jobs.spec.space.summary import Line


class ImportedSpaceOut(Answer):
    """A search space that was read from another tool's file."""

    format: Format
    search: Stored[JsonObject] = Field(description="Parts of an experiment's `search`.")
    summary: list[Line] = Field(description="The hyperparameters in words.")
    notes: list[str] = Field(description="Keys that were left out or written differently.")


class ExportedSpaceOut(Answer):
    """A search space in the format of another tool."""

    format: Literal["keras_tuner"]
    config: Stored[JsonObject] = Field(description="The argument of keras_tuner.HyperParameters.from_config.")
