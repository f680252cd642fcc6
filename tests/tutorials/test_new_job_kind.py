"""Applies docs/tutorial-new-job-kind.md to a copied tree and runs its test."""

import pytest

from tests.tutorials.tree import Tree

TABLE = "jobs/kinds/__init__.py"
TEST = "tests/jobs/test_evaluate.py"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copied tree with the tutorial's kind in it."""
    tree = Tree.copy(tmp_path_factory.mktemp("tree"))
    tree.follow("tutorial-new-job-kind.md")
    (tree.root / "jobs/kinds/evaluate/__init__.py").touch()
    return tree


def test_a_kind_is_four_new_files_and_one_entry_in_the_table(tree: Tree) -> None:
    assert sorted(tree.written) == [
        "jobs/kinds/evaluate/actions.py",
        "jobs/kinds/evaluate/facts.py",
        "jobs/kinds/evaluate/payload.py",
        TEST,
        "workers/engine/tasks/evaluate_version.py",
    ]
    assert tree.added == {
        TABLE: ["from jobs.kinds.evaluate.facts import EVALUATE\n", "        EVALUATE,\n"],
    }
    assert not any(tree.removed.values())


def test_the_kind_works_through_form_rest_runner_and_page(tree: Tree) -> None:
    ran = tree.test(TEST, "tests/architecture/test_kinds.py", "tests/architecture/test_kind_names.py")
    assert "test_a_version_is_evaluated PASSED" in ran


def test_its_files_keep_the_rules_of_the_tree(tree: Tree) -> None:
    files = [*tree.written, *tree.added]
    tree.run("-m", "ruff", "check", *files)
    tree.run("-m", "ruff", "format", "--check", *files)
