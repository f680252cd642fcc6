"""Configures allauth: no sign-up and no login messages."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class Adapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth has no types
    """Disables sign-up, because administrators create the accounts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Add no message: the page shows that the user is logged in."""
