"""Declares the answers about all trials of a search at once: columns, timeline, importance, its answer."""

from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Field

from jobs.answers.base import Answer, Nonfinite, Parameter, Stored
from jobs.messages.analysis import ImportanceAnswer

Codes = Annotated[list[int], Field(description="Indexes into `states`.")]
Moments = Annotated[list[float | None], Field(description="Seconds since 1970.")]


class ObjectiveOut(TypedDict):
    """A metric and its direction."""

    metric: str
    direction: Literal["min", "max"]


class AxisOut(TypedDict):
    """One hyperparameter of the space."""

    name: str
    kind: str
    min: NotRequired[float]
    max: NotRequired[float]
    sampling: NotRequired[str]
    values: NotRequired[list[Parameter]]
    found_by: NotRequired[
        Annotated[
            int,
            Field(description="The trial whose code first asked for it, if the space lacked it before."),
        ]
    ]


class RunningOut(TypedDict):
    """How far a running execution is."""

    epochs: int
    of: int | None


class ColumnsOut(TypedDict):
    """The trials of a search, one list per column, in the order of their numbers."""

    cursor: Annotated[str, Field(description="Goes into `?after=` of the next request.")]
    whole: Annotated[bool, Field(description="Whether these are all trials.")]
    total: int
    objective: ObjectiveOut
    objectives: list[ObjectiveOut]
    states: list[str]
    space: list[AxisOut]
    waiting: Annotated[dict[str, str], Field(description="Why trials wait, by number.")]
    front: Annotated[list[int], Field(description="Numbers of the trials on the Pareto front.")]
    answers: Annotated[dict[str, int], Field(description="Which trial's scores a trial has, by number.")]
    beats_constant: Annotated[
        bool | None,
        Field(
            description="Whether the best trial is better than the constant prediction; null if unknown. See "
            "`baseline` in the search's answer."
        ),
    ]
    number: list[int]
    state: Codes
    score: list[float | None]
    std: list[float | None]
    by_hand: Annotated[list[int], Field(description="1 for trials that were queued by hand.")]
    restarts: list[int]
    started: Moments
    finished: Moments
    seconds: Annotated[
        list[float | None],
        Field(description="How long trials ran, without pauses and waits; null before the end."),
    ]
    values: Annotated[
        dict[str, list[float | None]],
        Field(description="By hyperparameter; of choices, indexes into its `values` in `space`."),
    ]
    executions: Annotated[list[int], Field(description="How many executions have completed.")]
    epochs: list[int]
    metrics: Annotated[dict[str, list[float | None]], Field(description="Means over executions.")]
    under_way: Annotated[
        dict[str, dict[str, RunningOut]], Field(description="Running executions, by trial and execution.")
    ]
    nonfinite: NotRequired[Nonfinite]


class TimelineOut(TypedDict):
    """When and where trials ran, one list per column."""

    workers: list[str]
    trial: list[int]
    attempt: list[int]
    worker: Annotated[list[int], Field(description="Indexes into `workers`.")]
    lane: Annotated[list[int], Field(description="The row under the worker.")]
    start: Annotated[list[float], Field(description="Seconds since 1970.")]
    end: Annotated[list[float], Field(description="Seconds since 1970.")]
    outcome: Annotated[list[str], Field(description="Empty while the trial runs.")]
    resumed_from: list[int | None]


ImportanceState = Literal["too_few", "missing", "computing", "fresh", "stale"]


class ImportanceOut(Answer):
    """How much each hyperparameter of a search matters."""

    state: ImportanceState
    needs: int = Field(description="How many completed trials are needed.")
    trials: int = Field(description="How many trials the result is based on.")
    completed: int
    pruned: int = Field(description="Pruned trials; they do not count.")
    over: bool = Field(description="Whether the search has ended.")
    result: Stored[ImportanceAnswer | None]
    error: str
    objective: str
    source: str = Field(description="The method's publication.")


class ScoringOut(Answer):
    """The meaning of "best" in a search."""

    metric: str
    direction: Literal["min", "max"]
    rows: str = Field(description="The rows on which the metric is measured.")
    text: str = Field(description="All of it, such as: highest val_accuracy on about 360 validation rows.")


class RankedTrialOut(Answer):
    """One of the best trials of a search."""

    number: int
    state: str
    values: Stored[dict[str, Parameter]]
    score: float | None = Field(description="The mean over its trainings.")
    std: float | None
    trainings: int = Field(description="How many of its trainings have a score.")


class LeadOut(Answer):
    """How far the best trial leads over the next one with other values."""

    value: float = Field(description="The difference of the means; positive if the first is better.")
    low: float | None = Field(description="Lower end of the confidence interval; null if it is unknown.")
    high: float | None
    confidence: float
    verdict: Literal["clear", "unclear", "unknown"] = Field(
        description="clear: the interval excludes zero. unknown: the spread of trainings is not known."
    )
    method: Literal["welch", "paired_folds"] = Field(
        description="welch: t-interval of independent trainings. paired_folds: corrected t-interval of the "
        "differences on the same folds."
    )
    trainings: list[int] = Field(
        min_length=2,
        max_length=2,
        description="How many trainings were compared; those of other trials with the same values count.",
    )
    needed: int | None = Field(
        description="How many trainings of each would show a lead of this size as clear; null if unknown, or "
        "more than a trial may have."
    )


class TemplateResultOut(Answer):
    """The result of a search over several templates for one of them."""

    template: str
    label: str
    trials: int
    completed: int
    pruned: int
    failed: int
    seconds: float = Field(description="Of all its trials together.")
    best_trial: int | None = Field(description="The best completed trial; null if there is none.")
    best: float | None = Field(description="Its score.")
    defaults: float | None = Field(description="The score of the template's default configuration.")
    defaults_trial: int | None = Field(
        description="The trial with that configuration; null if there is none yet."
    )
    defaults_state: str | None = Field(description="Its state: one that was pruned or failed has no score.")


class BaselineOut(Answer):
    """The constant prediction, which ignores the features, beside the best trial on the same rows."""

    value: float = Field(
        description="Its score; with cross-validation the mean over the best trial's trainings."
    )
    constant: str = Field(description="The prediction for every row, such as: always 'no'.")
    beaten: bool = Field(description="Whether the best trial is better.")
    may_be_chance: bool = Field(
        description="Whether it is better by so little that the choice of validation rows may explain it: "
        "inside the 95 % interval of the constant's accuracy."
    )
    text: str = Field(description="The comparison in sentences.")
    remedy: str = Field(description="What may help; empty if it is beaten.")


class RecommendedOut(Answer):
    """The one model to use of those that the steps after a search made."""

    job: int | None = Field(description="The step that made it; null if no model is recommended.")
    title: str = Field(description="Its name; empty if no model is recommended.")
    why: str


class AnswerOut(Answer):
    """The answer of a search: the best trial, how sure its lead is, and what can be done next."""

    over: bool = Field(description="Whether the search part of the job has ended.")
    scoring: ScoringOut
    best: RankedTrialOut | None = Field(description="Null while no trial has a score.")
    next: RankedTrialOut | None = Field(description="The best trial with other values.")
    baseline: BaselineOut | None = Field(
        description="The constant prediction; null if it is unknown: an earlier release ran the search, it "
        "has several objectives, or code of users computes a metric of its own. If it is not beaten, nothing "
        "that builds on the best trial is proposed: `repeats` is null, `smaller_range`, `at_edge` and "
        "`at_declared_edge` are empty, and no model is recommended."
    )
    lead: LeadOut | None = Field(description="Null with several objectives, or without a next trial.")
    repeats: int | None = Field(
        description="How many executions `repeat` gives the best two by default; null if it is not possible."
    )
    smaller_range: list[str] = Field(
        description="The effect of `narrow` in sentences; empty if it is not possible."
    )
    at_edge: list[str] = Field(
        description="Hyperparameters whose best value is at a bound of the range; better ones may lie beyond."
    )
    at_declared_edge: list[str] = Field(
        description="Those of them whose bound own code declares: no experiment can widen them."
    )
    importance: ImportanceOut
    recommended: RecommendedOut | None = Field(
        description="Null while the job runs, and if it has retrained no trial."
    )
    templates: list[TemplateResultOut] = Field(
        description="The templates, best first; empty if the search tries one."
    )
