"""Declares the answers about API tokens."""

from pydantic import Field

from jobs.contracts.answers.base import Answer, Time


class TokenOut(Answer):
    """A token without its secret."""

    id: int
    name: str
    prefix: str = Field(description="The first characters of the secret.")
    scopes: list[str]
    expires: Time | None
    last_used: Time | None
    created: Time


class NewTokenOut(TokenOut):
    """A new token with its secret."""

    token: str = Field(description="The secret; it is shown only once.")
