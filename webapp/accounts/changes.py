"""Records password and second-factor changes, after which the user's other sessions end."""

from typing import Any

from allauth.account import signals as account
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from django.dispatch import receiver
from django.http import HttpRequest

from jobs.actions.people import logins, people
from jobs.models import User
from webapp.accounts.login import issuers_of

CODES = Authenticator.Type.RECOVERY_CODES


def _changed(request: HttpRequest, user: User, verb: str) -> None:
    logins.record_login_change(user, verb)
    people.end_sessions(user, keep=request.session.session_key)


@receiver((account.password_changed, account.password_set))
def password_changed(request: HttpRequest, user: User, **_: Any) -> None:
    people.set_password_issuers(user, issuers=issuers_of(request.session))
    _changed(request, user, "password")


@receiver(mfa.authenticator_added)
def authenticator_added(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    # The recovery codes are created with the first authenticator.
    if authenticator.type != CODES:
        _changed(request, user, "second_factor_on")


@receiver(mfa.authenticator_removed)
def authenticator_removed(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type != CODES:
        _changed(request, user, "second_factor_off")


@receiver(mfa.authenticator_reset)
def recovery_codes_created(request: HttpRequest, user: User, **_: Any) -> None:
    _changed(request, user, "recovery_codes")


@receiver(mfa.authenticator_used)
def recovery_code_used(user: User, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type == CODES:
        logins.record_login_change(user, "recovery_code_used")
