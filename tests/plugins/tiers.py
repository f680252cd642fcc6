"""The two test tiers: `--first-tier` leaves out the folders that only `make test-all` runs.

Their table is in pyproject.toml, beside the import contracts.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
FIRST_TIER = "--first-tier"
NARROWING = ("keyword", "markexpr", "lf", "stepwise", "stepwise_skip", "deselect", "ignore", "ignore_glob")
"""Options of pytest that leave out tests."""


def second_tier() -> Mapping[str, list[str]]:
    """Return the second tier's folders, relative to `tests`, each with the paths that it guards."""
    table: dict[str, list[str]] = _settings()["second-tier"]
    return table


@cache
def folder_of(file: Path) -> str:
    """Return a test file's folder: one in the second tier, or one directly in `tests`."""
    path = file.relative_to(TESTS)
    parents = {parent.as_posix() for parent in path.parents}
    return next((folder for folder in second_tier() if folder in parents), path.parts[0])


def guards_of_all() -> list[str]:
    """Return the paths that every folder in the second tier guards."""
    paths: list[str] = _settings()["guarded-by-all"]
    return paths


def guarded_folders(changed: Iterable[str]) -> list[str]:
    """Return the second tier's folders whose guarded paths changed.

    Args:
        changed: paths of changed files, relative to the repository's root.
    """
    paths = list(changed)
    if any(_covers(guard, path) for guard in guards_of_all() for path in paths):
        return list(second_tier())
    return [
        folder
        for folder, guards in second_tier().items()
        if any(_covers(guard, path) for guard in (f"tests/{folder}", *guards) for path in paths)
    ]


def is_narrowed(config: pytest.Config) -> bool:
    """Return whether a run leaves out tests of its folders."""
    return any(config.getoption(name, None) for name in NARROWING)


def is_whole(config: pytest.Config) -> bool:
    """Return whether a run includes all tests in the first tier, or in both."""
    return not is_narrowed(config) and [Path(argument).resolve() for argument in config.args] == [TESTS]


class Tiers:
    """The pytest plugin: does not collect the second tier with `--first-tier`."""

    def __init__(self, config: pytest.Config) -> None:
        self._left_out = (
            {TESTS / folder for folder in second_tier()} if config.getoption(FIRST_TIER) else set()
        )

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if collection_path in self._left_out else None


def _covers(guard: str, path: str) -> bool:
    return path == guard or path.startswith(f"{guard}/")


@cache
def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["trainyard"][
        "tests"
    ]
    return settings
