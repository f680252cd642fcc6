"""Declares the answers about promotion requests, with their gates and decisions."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class GateAlternativeOut(Answer):
    """One comparison of a gate that passes if any of several does."""

    metric: str
    direction: str = Field(description="The better direction of the metric, min or max.")
    value: float | None
    limit: float | None
    gain: float | None = Field(description="By how much the version is better.")
    low: float | None = Field(description="Lower bound of the gain's 95 % interval.")
    high: float | None
    passed: bool


class GateOut(Answer):
    """One gate and the values that it compared."""

    name: str
    state: str = Field(description="passed, failed, skipped, not_evaluated or overridden.")
    value: float | str | bool | None
    limit: float | str | bool | None
    champion: float | str | bool | None = Field(description="The value of the version in production.")
    detail: str
    rule: str = Field(description="The rule that was applied, with its numbers.")
    metric: str = Field(description="The metric of `value`; empty if it is of none.")
    direction: str | None = Field(description="The better direction of the metric, min or max.")
    low: float | None = Field(description="Lower bound of the value's 95 % interval.")
    high: float | None
    rows: int | None = Field(description="The number of test rows.")
    alternatives: list[GateAlternativeOut] = Field(
        description="Comparisons of which one must pass, if there are several."
    )
    next_step: str = Field(description="What to do about a gate that has not passed.")


class PromotionDecisionOut(Answer):
    """One entry in the thread of a promotion request."""

    user: str
    verdict: str = Field(description="approve, reject, withdraw or comment.")
    comment: str
    accept: list[str] = Field(description="Gates that were accepted without an evaluation.")
    digest: str = Field(description="Of the version that was decided on.")
    created: Time


class CutOffOut(Answer):
    """A prediction server that has not learnt of a release."""

    replica: str
    since: Time = Field(description="When it learnt of releases for the last time.")
    generation: int = Field(description="The one that it served then, and may still serve.")


class PromotionOut(Answer):
    """A promotion request."""

    id: int
    state: str
    model: str
    version: int
    digest: str = Field(description="The `identity` of the version.")
    stage: str
    comment: str
    requested_by: str
    single_person: bool = Field(
        description="Whether its requester may decide it: the project's rule when the request was made."
    )
    baseline: int | None = Field(description="The version in production when the request was made.")
    gates: list[GateOut]
    gates_revision: int = Field(description="The rules that apply: 0 are the defaults.")
    gates_changed_by: str | None = Field(description="Who wrote this revision of the rules.")
    gates_changed: Time | None
    gate_job: int | None
    decisions: list[PromotionDecisionOut]
    generation: int | None = Field(description="The generation of the release that followed.")
    cut_off: list[CutOffOut] = Field(
        description="Prediction servers that may answer with an older generation, while this is the newest."
    )
    expires: Time
    created: Time
    decided: Time | None
