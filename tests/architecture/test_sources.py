"""Rules on the source that no import contract can express."""

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.sources import ROOT, imports, modules

CLOCKS = {"now", "utcnow", "today"}
OWN_CLOCK = {
    "jobs.keys.secret_keys": "former keys expire before there is a database",
    "jobs.clock": "reads this machine's clock beside SQLite",
    "jobs.logs.foreign_output": "dates lines of the log, in processes that may have no database",
    "webapp.ops.backup_file": "dates a copy, in a process that may have no database",
    "webapp.ops.console": "writes the time of day at the terminal",
    "webapp.ops.database.upgrade_copies": "names a copy by the time",
    "webapp.ops.regular_backups": "names a backup by the time",
}


def reads_own_clock(tree: ast.Module) -> bool:
    """Return whether a module reads the clock of this machine through Django or Python."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in CLOCKS
        and ast.unparse(node.value).split(".")[-1] in {"timezone", "datetime", "date"}
        for node in ast.walk(tree)
    )


def managers(tree: ast.Module) -> Iterator[int]:
    """Yield the lines on which a module asks a model's manager for rows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"objects", "_default_manager", "_base_manager"}:
            yield node.lineno


def test_only_listed_modules_read_the_clock_of_the_machine() -> None:
    reading = {
        name
        for name, tree in modules().items()
        if name.startswith(("jobs.", "webapp.")) and reads_own_clock(tree)
    }
    assert reading == set(OWN_CLOCK)


def test_pages_and_api_read_rows_through_queries_and_write_them_through_actions() -> None:
    lines = {
        f"{name}:{line}"
        for name, tree in modules().items()
        if name.startswith("webapp")
        for line in managers(tree)
    }
    assert not lines


def test_there_are_no_import_cycles() -> None:
    try:
        TopologicalSorter({name: imports(name) for name in modules()}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_a_folder_of_the_domain_has_at_most_thirty_modules() -> None:
    folders = Counter(path.parent.relative_to(ROOT) for path in (ROOT / "jobs").rglob("*.py"))
    too_large = {str(folder): count for folder, count in folders.items() if count > 30}
    assert too_large.keys() <= {"jobs/migrations"}
