"""Requests are taken with and without the path of the public address."""

from typing import Any

import pytest
from pytest_django import Settings

from webapp.public_path import WithoutPublicPath, WithPublicPath


async def reach(path: str) -> tuple[str, str, str]:
    """Return the path that the limits see, and the path and the root that Django gets."""
    seen: list[str] = []

    async def django(scope: Any, receive: Any, send: Any) -> None:
        seen.extend((scope["path"], scope.get("root_path", "")))

    async def limits(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["path"])
        await WithPublicPath(django)(scope, receive, send)

    await WithoutPublicPath(limits)({"type": "http", "path": path}, None, None)
    return seen[0], seen[1], seen[2]


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("/yard/jobs/5", "/jobs/5"),
        ("/jobs/5", "/jobs/5"),
        ("/yard/", "/"),
        ("/yard", "/"),
        ("/", "/"),
        ("/yards", "/yards"),
        ("/yard/yard/x", "/yard/x"),
    ],
)
async def test_all_layers_see_the_same_page(settings: Settings, path: str, inner: str) -> None:
    settings.FORCE_SCRIPT_NAME = "/yard"
    assert await reach(path) == (inner, f"/yard{inner}", "/yard")


async def test_without_a_path_nothing_changes(settings: Settings) -> None:
    settings.FORCE_SCRIPT_NAME = None
    assert await reach("/yard/jobs") == ("/yard/jobs", "/yard/jobs", "")
