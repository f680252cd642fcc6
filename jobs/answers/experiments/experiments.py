"""Declares the answers about experiments, their revisions, and a spec's check."""

from typing import Annotated, Any

from pydantic import Field

from jobs.answers.base import Answer, Time
from jobs.spec.base import DocumentedAs
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.json_types import JsonValue
from jobs.spec.plan.plan import Plan
from jobs.spec.space.ranges import Sampling

Spec = Annotated[Any, DocumentedAs(ExperimentSpec)]
"""A spec as it was sent or stored. `jobs.actions.experiments` validates it; a draft may be invalid."""


class BestOut(Answer):
    """The best score of an experiment."""

    job: int
    metric: str
    direction: str
    score: float


class ExperimentOut(Answer):
    """An experiment."""

    id: int
    project: str
    name: str
    tags: list[str]
    notes: str
    archived: bool
    version: int = Field(description="Increases with every change; its ETag.")
    revision: int | None = Field(description="The number of the newest revision.")
    digest: str | None = Field(description="Of the newest revision's spec.")
    spec: Spec | None = Field(description="Of the newest revision.")
    draft: JsonValue = Field(description="An unfinished spec that was saved later, or null.")
    last_job: int | None
    state: str | None = Field(description="Of the last job.")
    best: BestOut | None
    created_by: str
    created: Time
    updated: Time


class RevisionOut(Answer):
    """An immutable revision of an experiment's spec."""

    number: int
    digest: str
    spec: Spec
    reason: str
    created_by: str
    created: Time


class SpecProblemOut(Answer):
    """One error in a request."""

    pointer: str = Field(description="JSON pointer into the request body.")
    message: str
    job: int | None = Field(
        default=None, exclude_if=lambda job: job is None, description="A job whose page shows more about it."
    )


class RangeFields(Answer):
    """The fields of a numeric hyperparameter that a text means."""

    min: int | float
    max: int | float
    step: int | float | None = None
    sampling: Sampling | None = None


class RangeOut(Answer):
    """A range that the spec has as a text, and the fields that it means."""

    pointer: str = Field(description="Of the hyperparameter, such as /search/space/0.")
    text: str
    fields: RangeFields


class ValidationOut(Answer):
    """Whether a spec is valid, and its plan."""

    valid: bool
    errors: list[SpecProblemOut]
    plan: Plan | None = Field(description="Null if the spec cannot be read.")
    ranges: list[RangeOut] = Field(description="Those that can be read, also if the spec is invalid.")


class FoundOut(Answer):
    """The experiment that searches a good model."""

    experiment: int
    job: int | None = Field(description="Its search; null if it was not submitted.")
    left_out: list[str] = Field(description="Why templates are not searched, for a table larger than memory.")
