"""Configures the second factor: its secrets are encrypted, and it stays on where it is required."""

from typing import ClassVar

import structlog
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import generate_totp_secret

from jobs import access
from jobs.actions.people.second_factors import PURPOSE, SEALED
from jobs.keys import sealing

log = structlog.get_logger(__name__)


class Adapter(DefaultMFAAdapter):  # type: ignore[misc] # allauth has no types
    """Encrypts the secrets for authenticator apps and recovery codes."""

    error_messages: ClassVar[dict[str, str]] = {
        **DefaultMFAAdapter.error_messages,
        "cannot_delete_authenticator": "Approvers and administrators need a second factor here.",
    }

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return not access.requires_second_factor(authenticator.user)

    def encrypt(self, text: str) -> str:
        return SEALED + sealing.seal(text, PURPOSE)

    def decrypt(self, encrypted_text: str) -> str:
        """Return the secret. Earlier versions did not encrypt it."""
        if not encrypted_text.startswith(SEALED):
            return encrypted_text
        try:
            return sealing.unseal(encrypted_text.removeprefix(SEALED), PURPOSE)
        except sealing.Unreadable:
            log.warning("a second factor was encrypted with another secret key: no code is accepted")
            # Any fixed value would be a secret that everyone knows.
            return str(generate_totp_secret())
