"""Declares the answer about a credential. Its secrets are in no answer."""

from datetime import datetime

from pydantic import Field

from jobs.answers.base import Answer


class CredentialOut(Answer):
    """A credential of a project."""

    name: str
    kind: str = Field(description="s3, bearer, basic or gcs.")
    place: str = Field(description="Where it is used: a host, an endpoint or a region; empty for its kind's.")
    created_by: str = Field(description="Who saved it.")
    created: datetime = Field(description="When it was saved.")
