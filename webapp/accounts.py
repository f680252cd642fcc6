from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class Adapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth has no types
    """Accounts are made by administrators; nobody signs up alone."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Return False, always."""
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Say nothing: "you are logged in" is plain to see."""
