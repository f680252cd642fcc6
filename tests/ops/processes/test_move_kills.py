"""A move that is killed at any step leaves a target that is refused, and can be repeated."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ops.killed_moves import move_killed_at_steps
from tests.ops.moved import Installation
from webapp.settings import databases

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(sys.platform != "linux", reason="forks"),
]


def test_a_killed_move_is_refused_or_whole_and_is_repeated(tmp_path: Path, migrated: Path | None) -> None:
    if migrated is None:
        pytest.skip("the tests use no SQLite")

    def targets() -> Iterator[dict[str, Any]]:
        number = 0
        while True:
            yield databases.database_at(f"sqlite://{tmp_path / f'{number}.sqlite3'}")
            number += 1

    move_killed_at_steps(Installation(tmp_path / "home", migrated), targets())
