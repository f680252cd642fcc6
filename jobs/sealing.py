"""Encrypts values that the database keeps and returns, so that a copy of it does not reveal them."""

import base64

from cryptography.fernet import Fernet, InvalidToken
from django.utils.crypto import salted_hmac

SALT = "trainyard.sealing"


class Unreadable(ValueError):
    """The value was sealed with another secret key or for another purpose, or was changed."""


def seal(text: str, purpose: str) -> str:
    """Encrypt `text` with a key derived from the installation's secret key and the purpose."""
    return _make_cipher(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, purpose: str) -> str:
    """Return the text that was sealed for this purpose.

    Raises:
        Unreadable: it was not, or the secret key is another one.
    """
    try:
        return _make_cipher(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable(f"a value for {purpose.split()[0]} cannot be decrypted") from error


def _make_cipher(purpose: str) -> Fernet:
    key = salted_hmac(SALT, purpose, algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(key))
