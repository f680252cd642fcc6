"""Declares the comparison of jobs, experiments and model versions."""

from typing import Annotated, Literal, TypedDict

from pydantic import Field

from jobs.answers.runs.metrics import SeriesOut
from jobs.spec.json_types import JsonValue

type SubjectKind = Literal["job", "experiment", "version"]
type MeasuredPart = Literal["score", "validation", "test"]


class CurveSourceOut(TypedDict):
    """Whose learning curve represents a subject."""

    job: int
    trial: Annotated[int | None, Field(description="Of a search without a retrained model: its best trial.")]


class SubjectOut(TypedDict):
    """One of the things that are compared: a column of the comparison."""

    kind: SubjectKind
    name: Annotated[str, Field(description="Unique in the comparison.")]
    project: str | None
    job: Annotated[
        int | None, Field(description="The job that is compared; of an experiment its newest one.")
    ]
    job_kind: str | None
    experiment: int | None
    model: Annotated[str | None, Field(description="Of a version: its registered model.")]
    version: int | None
    state: str | None
    objective: Annotated[str | None, Field(description="The metric that ranks its models.")]
    direction: Literal["min", "max"] | None
    measured: Annotated[
        str, Field(description="The model that its metrics describe; empty if there is none.")
    ]
    note: Annotated[str, Field(description="Why it has no test metrics; empty if it has.")]
    rows_group: Annotated[
        str,
        Field(
            description="A letter that subjects with the same data, split and target share; empty if unknown."
        ),
    ]
    test_rows: int | None
    bytes: int | None
    parameters: int | None
    latency_ms: Annotated[float | None, Field(description="95th percentile of a call with one row.")]
    hardware: Annotated[str, Field(description="Where the latency was measured; empty if unknown.")]
    seconds: Annotated[float | None, Field(description="From the job's start to its end.")]
    curve: CurveSourceOut | None


class SettingRowOut(TypedDict):
    """A setting of the experiments, with one value for each subject."""

    pointer: Annotated[str, Field(description="JSON pointer into the spec, or /values/NAME.")]
    values: Annotated[list[JsonValue], Field(description="Null where a subject has no such setting.")]


class MeasuredValueOut(TypedDict):
    """A metric of one subject; bounds of its 95 % interval are null if unknown."""

    value: float
    low: float | None
    high: float | None


class MetricRowOut(TypedDict):
    """A metric with one value for each subject."""

    part: MeasuredPart
    name: str
    direction: Annotated[
        Literal["min", "max"] | None,
        Field(description="Null if the subjects were optimized in opposite directions."),
    ]
    values: list[MeasuredValueOut | None]
    best: Annotated[
        list[int],
        Field(description="Indices of the best value; empty if the values are equal or not comparable."),
    ]
    close: Annotated[
        bool, Field(description="Whether another interval overlaps with that of the best value.")
    ]


class ComparisonOut(TypedDict):
    """Jobs, experiments and versions side by side."""

    subjects: list[SubjectOut]
    missing: Annotated[list[str], Field(description="Requested, but there is no such thing to see.")]
    left_out: Annotated[int, Field(description="How many were requested beyond the greatest number.")]
    differing: list[SettingRowOut]
    equal: list[SettingRowOut]
    metrics: list[MetricRowOut]
    same_rows: Annotated[
        bool, Field(description="Whether all subjects with test metrics were measured on the same rows.")
    ]
    rows: Annotated[str, Field(description="A sentence about the test rows; empty without test metrics.")]
    curves: Annotated[list[str], Field(description="The metrics that have learning curves.")]


class ComparedSeriesOut(SeriesOut):
    """A learning curve of a subject."""

    subject: Annotated[str, Field(description="Its name.")]
    place: Annotated[int, Field(description="Its index in the comparison.")]


class ComparedCurvesOut(TypedDict):
    """The learning curves of all subjects for one metric."""

    series: list[ComparedSeriesOut]
