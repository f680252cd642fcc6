"""Removes a lost password and second factor."""

from django.db import transaction

from jobs.actions.people import people
from jobs.models import User


def reset_login(user: User) -> None:
    """Remove a user's password and second factor, for the operator; ends all sessions."""
    with transaction.atomic():
        removed, _ = user.authenticator_set.all().delete()  # type: ignore[attr-defined] # allauth has no types
        people.forget_password(user, second_factor=bool(removed))
