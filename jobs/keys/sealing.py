"""Encrypts values that the database keeps and returns, so that a copy of it does not reveal them."""

import base64
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.utils.crypto import salted_hmac

from jobs.keys import key_ring

SALT = "trainyard.sealing"


class Unreadable(ValueError):
    """The value was sealed with another secret key or for another purpose, or was changed."""


def seal(text: str, purpose: str) -> str:
    """Encrypt `text` with a key derived from the installation's secret key and the purpose."""
    return _cipher(key_ring.keys().present, purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, purpose: str) -> str:
    """Return the text that was sealed for this purpose.

    Raises:
        Unreadable: it was not, or the secret key is another one.
    """
    try:
        return _decrypt(sealed, purpose, key_ring.keys().all())
    except InvalidToken:
        pass
    try:
        # Another process may have rotated the key just now.
        return _decrypt(sealed, purpose, key_ring.decrypting())
    except InvalidToken as error:
        raise Unreadable(f"a value for {purpose.split()[0]} cannot be decrypted") from error


def reseal(sealed: str, purpose: str) -> str:
    """Encrypt a sealed text with the present key.

    Raises:
        Unreadable: see `unseal`.
    """
    return seal(unseal(sealed, purpose), purpose)


def _decrypt(sealed: str, purpose: str, keys: Sequence[str]) -> str:
    ciphers = MultiFernet([_cipher(key, purpose) for key in keys])
    return ciphers.decrypt(sealed.encode()).decode()


def _cipher(secret: str, purpose: str) -> Fernet:
    key = salted_hmac(SALT, purpose, secret=secret, algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(key))
