"""Allauth's forms that check a password or a code, each check as a counted attempt."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allauth.account.forms import ChangePasswordForm
from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from django import forms

from jobs.actions.people import logins
from jobs.errors import TooManyAttempts
from jobs.models import LoginLink, User
from webapp.accounts import delay
from webapp.accounts.login import address_of


@contextmanager
def counted(step: logins.Step, user: User) -> Iterator[None]:
    """Count the check in the block as an attempt, which failed if it raises an error."""
    try:
        with logins.attempt(step, user.username, address=address_of(context.request)) as attempt:
            yield
            attempt.succeed()
    except TooManyAttempts as error:
        raise delay.delay_error(error) from error


class CodeOnce:
    """Accepts each authenticator code once; allauth remembers used codes in one process only."""

    user: User
    authenticator: Authenticator

    def clean_code(self) -> str:
        """Return the code.

        Raises:
            ValidationError: the code is wrong or was used, or the next attempt is not allowed yet.
        """
        with counted("code", self.user):
            code: str = super().clean_code()  # type: ignore[misc] # the form beside it in the bases
            is_app = self.authenticator.type == Authenticator.Type.TOTP
            if is_app and not logins.use_code(self.user, code):
                raise get_adapter().validation_error("incorrect_code")
        return code


class CodeForm(CodeOnce, AuthenticateForm):  # type: ignore[misc] # allauth has no types
    """The login's second step."""


class ConfirmCodeForm(CodeOnce, ReauthenticateForm):  # type: ignore[misc]
    """Confirms that it is the user, before the second factor is changed."""


class PasswordForm(ChangePasswordForm):  # type: ignore[misc]
    """Changes the password after the user has entered the old one."""

    def clean_oldpassword(self) -> str:
        """Return the old password."""
        with counted("password", self.user):
            password: str = super().clean_oldpassword()
        return password


class LinkForm(forms.Form):
    """Uses a login link. A link that another person made needs the user's password, if there is one."""

    password = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, *arguments: Any, link: LoginLink, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.user = link.user
        if link.issuer_id is None or not link.user.has_usable_password():
            del self.fields["password"]

    def clean_password(self) -> str:
        """Return the password.

        Raises:
            ValidationError: it is wrong, or the next attempt is not allowed yet.
        """
        password: str = self.cleaned_data["password"]
        with counted("password", self.user):
            if not self.user.check_password(password):
                raise forms.ValidationError("The password is wrong.")
        return password
