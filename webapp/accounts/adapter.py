"""Configures allauth: no sign-up, no login messages, and the login of `webapp.accounts.login`."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest, HttpResponse

from jobs import hints
from jobs.actions import logins
from jobs.errors import TooManyAttempts
from jobs.models import User
from webapp.accounts import delay, login


class Adapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth has no types
    """Disables sign-up, because administrators create the accounts, and records logins and logouts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Add no message: the page shows that the user is logged in."""

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Check a password; during a delay, show the error at the form."""
        try:
            user: User | None = super().authenticate(request, **credentials)
        except TooManyAttempts as error:
            raise delay.refusal(error) from error
        return user

    def post_login(self, request: HttpRequest, user: User, **given: Any) -> HttpResponse:
        """Record the login."""
        login.complete(request, user, given.get("signal_kwargs"))
        response: HttpResponse = super().post_login(request, user, **given)
        return response

    def logout(self, request: HttpRequest) -> None:
        """Record the logout, and close the live connections of the session."""
        user = request.user
        super().logout(request)
        if isinstance(user, User):
            logins.record(user, "logout")
            hints.send("access", user=user.pk)
