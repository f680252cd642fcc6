"""Declares the answers about API tokens."""

from pydantic import Field

from jobs.answers.base import Answer, Time


class TokenOut(Answer):
    """A token without its secret."""

    id: int
    name: str
    prefix: str = Field(description="The first characters of the secret.")
    scopes: list[str]
    endpoints: list[str] | None = Field(
        description="The endpoints that it may ask for predictions; null: all of its owner's projects."
    )
    predicts_until: Time | None = Field(
        description="Until then, a token with `serve` that is older than the scope `predict` may predict."
    )
    parent: int | None = Field(description="The token with which it was created, and with which it ends.")
    expires: Time | None
    last_used: Time | None
    created: Time


class OwnedTokenOut(TokenOut):
    """A token of anyone, without its secret."""

    owner: str
    service: bool = Field(description="Whether it is the installation's, such as a prediction server's.")
    owner_active: bool = Field(description="Whether the owner's account is active; otherwise it has stopped.")
    projects: list[str] = Field(description="The projects of which its owner is a member.")


class NewTokenOut(TokenOut):
    """A new token with its secret."""

    token: str = Field(description="The secret; it is shown only once.")
