"""Declares the answers about the quotas of projects."""

from pydantic import Field

from jobs.contracts.answers.base import Answer


class QuotaOut(Answer):
    """A quota of a project and its use."""

    used: int = Field(description="The use now; that of disk may be some seconds old.")
    limit: int | None = Field(description="The quota that applies; null means none.")
    default: int | None = Field(description="The installation's quota for projects without one of their own.")
    is_default: bool = Field(description="Whether the project has no quota of its own.")


class QuotasOut(Answer):
    """The quotas of a project. The use of one project does not affect the others."""

    slots: QuotaOut = Field(description="Slots that its jobs hold. Further jobs wait.")
    bytes: QuotaOut = Field(
        description="Bytes of its files, including deleted ones that can be restored. Uploads and jobs that "
        "do not fit are refused, and a run whose output does not fit fails."
    )
    jobs: QuotaOut = Field(description="Unfinished jobs, without steps of jobs. Further ones are refused.")
