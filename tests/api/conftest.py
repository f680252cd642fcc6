"""Callers of the REST API with a token, and the project of the registry's tests."""

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.models import ApiToken, User
from tests.registry.conftest import Yard, make_yard

ALL = ("read", "write", "approve", "predict", "serve", "admin")


class Caller:
    """A client that sends one token and JSON."""

    def __init__(self, user: User, scopes: tuple[str, ...]) -> None:
        secret = f"ty_{secrets.token_urlsafe(24)}"
        digest = hashlib.sha256(secret.encode()).hexdigest()
        self.token = ApiToken.objects.create(
            user=user, prefix=secret[:10], digest=digest, scopes=list(scopes)
        )
        self.secret = secret
        self._client = Client(headers={"Authorization": f"Bearer {secret}"}, raise_request_exception=False)

    def get(self, path: str, **query: Any) -> Any:
        return self._client.get(f"/api/v1{path}", query)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        content = {} if body is None else {"data": body, "content_type": "application/json"}
        return getattr(self._client, method)(f"/api/v1{path}", headers=headers, **content)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("post", path, {} if body is None else body, **headers)

    def raw(self, method: str, path: str, content: bytes, kind: str, **headers: str) -> Any:
        return self._client.generic(method, f"/api/v1{path}", content, content_type=kind, headers=headers)


@pytest.fixture
def call(db: None) -> Callable[..., Caller]:
    """Make a caller: `call(user)` with all scopes but worker, or `call(user, "read")`."""
    return lambda user, *scopes: Caller(user, scopes or ALL)


@pytest.fixture
def installation(db: None, tmp_path: Path) -> Yard:
    return make_yard(tmp_path)
