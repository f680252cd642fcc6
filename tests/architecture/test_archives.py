"""The web process and the domain read no user's archive or table: only runners do."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARSERS = {"zipfile", "tarfile", "gzip", "pandas", "pyarrow", "h5py", "keras"}
OWN_FILES = {"webapp/ops/backup.py", "webapp/ops/backup_file.py"}
"""Commands of the operator, which read and write backups."""


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_only_runners_can_parse_a_users_archives_and_tables() -> None:
    imports = {
        str(path.relative_to(ROOT)): imported(path) & PARSERS
        for folder in ("webapp", "jobs")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path for path, parsers in imports.items() if parsers} == OWN_FILES
