"""Declares the answers about the quotas of projects."""

from pydantic import Field

from jobs.answers.base import Answer


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
        description="Bytes of its files and stored events, including deleted ones that can be restored, "
        "and of uploads that are received. Uploads and jobs that do not fit are refused, and a run whose "
        "output does not fit fails."
    )
    jobs: QuotaOut = Field(description="Unfinished jobs, without steps of jobs. Further ones are refused.")
    uploads: QuotaOut = Field(
        description="Uploads that are received, or that wait for a worker which reads them. Further ones are "
        "refused."
    )
    events: QuotaOut = Field(
        description="Events of its runs a second. A metric point counts as one, and each other message of a "
        "run as 20. Runs that send more are delayed, and lines of their output are left out."
    )
