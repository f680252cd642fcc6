"""Declares the answer about the sandbox of a job with code of users."""

from pydantic import Field

from jobs.answers.base import Answer
from jobs.messages.sandbox import RecordedLevel


class SandboxOut(Answer):
    """The sandbox that a run really had."""

    level: RecordedLevel = Field(description="`namespaces`: only runs of earlier releases.")
    network: bool = Field(description="Whether it could connect to other hosts.")
