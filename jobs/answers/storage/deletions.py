"""Declares the answers about deletions: the preview of one, and those that can still be undone."""

from typing import Literal

from pydantic import Field

from jobs.answers.base import Answer, Time

type DeletionKind = Literal["project", "dataset", "experiment", "job", "version", "code"]


class LostOut(Answer):
    """A kind of object that a deletion takes away."""

    what: str = Field(description="In the plural, for example `jobs`.")
    count: int
    bytes: int | None = Field(None, description="Size of the files; null if the kind has none.")


class ReferrerOut(Answer):
    """An object that prevents a deletion."""

    kind: Literal["job", "experiment", "version", "promotion", "alias", "endpoint"]
    name: str = Field(description="Its id or slug; `model/number` for a version.")
    label: str = Field(description="Its name for people.")
    project: str | None = Field(None, description="The slug of an experiment's project.")
    why: str = Field(description="The rest of the sentence that begins with the label.")


class DeletionPreviewOut(Answer):
    """The consequences of a deletion."""

    kind: DeletionKind
    label: str
    lost: list[LostOut]
    bytes: int = Field(description="Size of all files that it refers to, each counted once.")
    frees: int = Field(description="Bytes of the files that nothing else refers to.")
    referrers: list[ReferrerOut] = Field(description="What prevents the deletion, at most 20.")
    days: int = Field(description="For how many days it can be restored.")


class DeletionOut(Answer):
    """A deletion that can be undone."""

    id: int
    kind: DeletionKind
    label: str
    project: str
    lost: list[LostOut]
    bytes: int
    deleted_by: str
    deleted: Time
    until: Time = Field(description="End of the time in which it can be restored.")
    restore: str = Field(description="The address that restores it by POST.")
