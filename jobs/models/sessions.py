import hashlib
from importlib import import_module

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from jobs.models.people import User


class Session(AbstractBaseSession):
    """A browser's session. Its key is a hash of the cookie's key, so stolen rows open no session."""

    session_key = models.CharField(max_length=64, primary_key=True)
    # NULL before the login is complete.
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="sessions")

    def __str__(self) -> str:
        return f"session of {self.user}"

    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:
        """Return the class that reads and writes these rows."""
        store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
        return store


def stored_key(key: str) -> str:
    """Hash a cookie's key to find its row.

    The key is random and longer than 160 bits, so the hash needs neither a salt nor many rounds.
    """
    return hashlib.sha256(key.encode()).hexdigest()
