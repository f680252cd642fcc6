"""Applies docs/tutorial-new-export-format.md to a copied tree and runs its tests."""

import pytest

from tests.tutorials.tree import Tree

TABLE = "jobs/spec/exports.py"
MODULE = "workers/engine/exports/rounded_weights.py"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copied tree with the tutorial's format in it."""
    tree = Tree.copy(tmp_path_factory.mktemp("tree"))
    tree.follow("tutorial-new-export-format.md")
    return tree


def test_a_format_is_an_entry_of_the_table_and_a_new_file(tree: Tree) -> None:
    assert tree.written == [MODULE]
    assert list(tree.added) == [TABLE]
    assert not any(tree.removed.values())


def test_the_format_is_in_form_rest_pages_task_and_reference(tree: Tree) -> None:
    output = tree.test(
        "tests/contracts/test_reference_tables.py",
        "tests/api/test_openapi.py::test_the_committed_document_is_current",
        "tests/tutorials/checks_export_format.py",
        "tests/architecture/test_exports.py",
        "tests/experiments/test_form_fields.py",
        "tests/engine/tasks/test_quantize.py",
        UPDATE_DOCS="1",
        UPDATE_OPENAPI="1",
    )
    assert "| `rounded_weights` |" in (tree.root / "docs" / "experiment-spec.md").read_text()
    assert "with_the_same_function[rounded_weights]" in output
    assert "the_engine_writes_it" in output


def test_its_files_keep_the_rules_of_the_tree(tree: Tree) -> None:
    files = [*tree.written, *tree.added]
    tree.run("-m", "ruff", "check", *files)
    tree.run("-m", "ruff", "format", "--check", *files)
