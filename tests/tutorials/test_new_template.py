"""Applies docs/tutorial-new-template.md to a copied tree and runs its tests."""

from pathlib import Path

from tests.tutorials.tree import Tree


def test_the_tutorial_adds_a_template_by_two_files_and_a_line(tmp_path: Path) -> None:
    tree = Tree.copy(tmp_path)
    tree.follow("tutorial-new-template.md")
    assert tree.written == [
        "jobs/spec/templates/residual.py",
        "workers/engine/models/templates/residual.py",
    ]
    assert tree.added == {"jobs/spec/templates/__init__.py": ['    "residual",\n']}
    assert not any(tree.removed.values())

    ran = tree.test(
        "tests/contracts/test_reference_tables.py",
        "tests/tutorials/checks_template.py",
        "tests/engine/models/test_templates.py",
        "tests/engine/long_trainings/test_programs.py",
        "tests/experiments/test_form_fields.py",
        "-k",
        "residual or form_fields or checks_template or reference_tables",
        UPDATE_DOCS="1",
    )
    assert "| `residual` |" in (tmp_path / "docs" / "experiment-spec.md").read_text()
    for name in (
        "trains_like_a_new_one[residual",
        "that_keras_creates[binary-residual",
        "the_engine_trains_it",
    ):
        assert name in ran
