"""Applies docs/tutorial-new-algorithm.md to a copied tree and runs its tests."""

from pathlib import Path

from tests.tutorials.tree import Tree


def test_the_tutorial_adds_an_algorithm_by_two_files_and_a_line(tmp_path: Path) -> None:
    tree = Tree.copy(tmp_path)
    tree.follow("tutorial-new-algorithm.md")
    assert tree.written == ["jobs/spec/algorithms/halton.py", "workers/engine/search/halton.py"]
    assert tree.added == {"jobs/spec/algorithms/__init__.py": ['    "halton",\n']}
    assert not any(tree.removed.values())

    ran = tree.test(
        "tests/contracts/test_reference_tables.py",
        "tests/tutorials/checks_algorithm.py",
        "tests/engine/search/test_search.py",
        "tests/engine/search/test_search_narrowed.py",
        "tests/experiments/test_form_fields.py",
        "-k",
        "halton or form_fields or checks_algorithm or reference_tables",
        UPDATE_DOCS="1",
    )
    assert "| `halton` |" in (tmp_path / "docs" / "experiment-spec.md").read_text()
    for name in ("are_in_the_space_and_have_its_types[halton]", "suggests_evenly_in_a_process_of_its_own"):
        assert name in ran
