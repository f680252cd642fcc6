"""Declares the answers about reservations of slots."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class ReservationOut(Answer):
    """Slots or GPUs that are kept for a person or a project for some time."""

    id: int
    pool: str
    worker: str | None = Field(description="The worker's name; null for the workers of the pool.")
    slots: int | None = Field(description="How many slots, also those of its GPUs; null for all.")
    gpus: list[str] = Field(
        description="The names of GPUs of the worker, such as gpu:1; empty if any of its slots will do."
    )
    begins: Time
    ends: Time
    user: str | None = Field(
        description="For whom it is, if it is for a person. It, the project and the note are left out for "
        "readers who share no project with the holder."
    )
    project: str | None = Field(description="For which project it is, if it is for one.")
    note: str
    created_by: str | None = Field(description="Who made it; null like the holder.")
    created: Time
