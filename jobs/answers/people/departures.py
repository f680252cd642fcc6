"""Declares the answer about what depends on a person."""

from pydantic import Field

from jobs.answers.base import Answer
from jobs.answers.people.tokens import TokenOut


class DepartureOut(Answer):
    """What ends or is stuck if a person's account is deactivated."""

    user: str
    tokens: list[TokenOut] = Field(
        description="The person's tokens that have not expired; they stop working."
    )
    only_admin_of: list[str] = Field(description="Projects without another active admin.")
    only_approver_of: list[str] = Field(description="Projects without another active person who may approve.")
    promotions: list[int] = Field(description="The person's promotion requests that are not decided.")
    unfinished_jobs: int = Field(description="The person's jobs that are not finished. They continue.")
    uploads: int = Field(description="Uploads in parts of the person's that have not arrived.")
