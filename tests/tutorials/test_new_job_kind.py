"""Applies docs/tutorial-new-job-kind.md to a copy of the tree and runs its test."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs/tutorial-new-job-kind.md"
COPIED = ("jobs", "webapp", "workers", "templates", "tests", "docs", "manage.py", "pyproject.toml")
BLOCK = re.compile(r"^`([\w/]+\.py)`\n\n```(python|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = "jobs/kinds/__init__.py"
TEST = "tests/jobs/test_evaluate.py"


def blocks() -> dict[str, str]:
    """Return the files of the tutorial by path; for the table, the diff."""
    return {path: text for path, _, text in BLOCK.findall(TUTORIAL.read_text("utf-8"))}


def with_lines(text: str, additions: str) -> str:
    """Return a text with each line that a diff adds after the line that it names before."""
    for before, added in re.findall(r"^ (.+)\n\+(.+)$", additions, re.MULTILINE):
        assert text.count(f"{before}\n") == 1, f"the tutorial names {before!r}"
        text = text.replace(f"{before}\n", f"{before}\n{added}\n")
    return text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with the tutorial's kind in it."""
    folder = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    for path, text in blocks().items():
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(with_lines(file.read_text("utf-8"), text) if path == TABLE else text, "utf-8")
    (folder / "jobs/kinds/evaluate/__init__.py").touch()
    return folder


def run(tree: Path, *command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_a_kind_is_four_new_files_and_one_entry_in_the_table() -> None:
    made = sorted(set(blocks()) - {TEST})
    assert made == [
        TABLE,
        "jobs/kinds/evaluate/actions.py",
        "jobs/kinds/evaluate/facts.py",
        "jobs/kinds/evaluate/payload.py",
        "workers/engine/tasks/evaluate_version.py",
    ]


def test_the_kind_works_through_form_rest_runner_and_page(tree: Path) -> None:
    run(
        tree,
        "pytest",
        TEST,
        "tests/architecture/test_kinds.py",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    )


def test_its_files_keep_the_rules_of_the_tree(tree: Path) -> None:
    files = list(blocks())
    run(tree, "ruff", "check", *files)
    run(tree, "ruff", "format", "--check", *files)
