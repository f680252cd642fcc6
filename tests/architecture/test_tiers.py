"""The two test tiers, and the changes for which `.ci/run` runs a second-tier folder."""

import shutil
import subprocess

import pytest

from tests.plugins import tiers
from tests.plugins.tiers import ROOT, TESTS, guarded_folders, second_tier

SOURCES = ("jobs", "transport", "webapp", "workers", "templates", "scripts")


def tracked(*folders: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


def test_every_folder_of_the_second_tier_exists_and_has_tests() -> None:
    assert all(list((TESTS / folder).glob("test_*.py")) for folder in second_tier())


def test_every_guarded_path_exists() -> None:
    paths = [*tiers.guards_of_all(), *(path for paths in second_tier().values() for path in paths)]
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_every_source_file_is_guarded_by_a_folder() -> None:
    assert [path for path in tracked(*SOURCES) if not guarded_folders([path])] == []


def test_a_change_of_locks_settings_migrations_or_shared_helpers_concerns_every_folder() -> None:
    for path in (
        "requirements.lock",
        "pyproject.toml",
        "webapp/settings/main.py",
        "jobs/migrations/0001_initial.py",
        "tests/conftest.py",
        "tests/plugins/tiers.py",
    ):
        assert guarded_folders([path]) == list(second_tier())


def test_a_change_of_tests_concerns_their_folder_alone() -> None:
    assert guarded_folders(["tests/upgrade/conftest.py"]) == ["upgrade"]
    assert guarded_folders(["tests/engine/models/test_trees.py", "CHANGELOG.md"]) == []
