"""Bounds how many passwords are hashed at once: each takes 100 MB memory, also for unknown names."""

import threading

from django.contrib.auth.hashers import Argon2PasswordHasher

MOST_AT_ONCE = 4
_places = threading.BoundedSemaphore(MOST_AT_ONCE)


class Argon2(Argon2PasswordHasher):
    """Argon2 with a bound. Further passwords wait in the threads of their requests."""

    def encode(self, password: str, salt: str) -> str:
        """Return a password's hash."""
        with _places:
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Return whether a hash belongs to a password."""
        with _places:
            return super().verify(password, encoded)
