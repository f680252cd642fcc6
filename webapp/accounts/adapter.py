"""Configures allauth: no sign-up, no login messages, and the login from `webapp.accounts.login`."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from jobs import hints
from jobs.actions.people import logins
from jobs.errors import TooManyAttempts
from jobs.models import User
from webapp.accounts import delay, login

PASSWORD_MESSAGES = ("account/messages/password_changed.txt", "account/messages/password_set.txt")


class Adapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth has no types
    """Disables sign-up, because administrators create the accounts, and records logins and logouts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """Add messages about passwords only: the page shows that the user is logged in."""
        if message_template in PASSWORD_MESSAGES:
            super().add_message(request, level, message_template, *args, **kwargs)

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """Return the page after a new password. A person's first one is set after the first login."""
        is_first = request.path == reverse("account_set_password")
        return reverse("home" if is_first else "account")

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Check a password; during a delay, show the error at the form."""
        try:
            user: User | None = super().authenticate(request, **credentials)
        except TooManyAttempts as error:
            raise delay.delay_error(error) from error
        return user

    def post_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse:
        """Record the login."""
        login.complete(request, user, options.get("signal_kwargs"))
        response: HttpResponse = super().post_login(request, user, **options)
        return response

    def logout(self, request: HttpRequest) -> None:
        """Record the logout, and close the session's live connections."""
        user = request.user
        super().logout(request)
        if isinstance(user, User):
            logins.record_login_change(user, "logout")
            hints.send("access", user=user.pk)
