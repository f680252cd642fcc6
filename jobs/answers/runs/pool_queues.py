"""Declares the answer about the queues of pools."""

from pydantic import Field

from jobs.answers.base import Answer


class LabelledQueueOut(Answer):
    """The part of a pool's queue that asks for the same labels."""

    labels: dict[str, str] = Field(description="Empty for jobs that any worker of the pool may run.")
    queued: int = Field(description="Attempts that wait.")
    oldest_seconds: float | None = Field(description="How long the first of them waits.")
    slots_wanted: int = Field(description="The slots of all of them together.")
    largest: int = Field(description="The most slots that one of them needs on one worker.")


class PoolQueueOut(Answer):
    """The queue of a pool, and the slots of its workers."""

    pool: str
    queued: int = Field(
        description="Attempts that wait and would run at once if there were slots enough: steps of jobs, and "
        "trials up to the limit of their search. A search without a trial counts as one."
    )
    oldest_seconds: float | None = Field(description="How long the first of them waits; null if none does.")
    slots_wanted: int = Field(description="The slots of all of them together.")
    slots: int = Field(description="Of live workers that take work.")
    busy: int = Field(description="Slots in use, with those of draining workers.")
    free: int = Field(description="Slots that take work now.")
    workers: int = Field(description="Live workers that take work.")
    draining: int = Field(description="Live workers that take no more work.")
    refusing: int = Field(description="Live workers that take no work because of a GPU that cannot be used.")
    preemption: bool = Field(
        description="Whether waiting jobs of higher priority let running ones of lower priority write a "
        "checkpoint and wait."
    )
    labels: list[LabelledQueueOut] = Field(description="The queue by the labels that jobs ask for.")
