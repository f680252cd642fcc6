"""The folders of `workers` import each other in one direction. pyproject.toml has their order."""

import ast
import graphlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKERS = ROOT / "workers"
PACKAGES = sorted(
    folder
    for folder in (WORKERS, *WORKERS.rglob("*"))
    if (folder / "__init__.py").is_file() and any(folder.glob("*/__init__.py"))
)
MAX_FILES = 30


def imports(file: Path) -> Iterator[str]:
    """The modules, or names of modules, that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def arrows(package: Path) -> Mapping[str, set[str]]:
    """By each package that a package contains, the others in it that it imports."""
    inside = {folder.parent.name for folder in package.glob("*/__init__.py")}
    prefix = ".".join(package.relative_to(ROOT).parts) + "."
    imported_packages: dict[str, set[str]] = defaultdict(set)
    for name in inside:
        for file in (package / name).rglob("*.py"):
            imported_packages[name] |= {
                imported.removeprefix(prefix).split(".")[0]
                for imported in imports(file)
                if imported.startswith(prefix)
            }
        imported_packages[name] = (imported_packages[name] & inside) - {name}
    return imported_packages


@pytest.mark.parametrize("package", PACKAGES, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_there_is_no_circle_of_packages(package: Path) -> None:
    graphlib.TopologicalSorter(arrows(package)).prepare()


def test_a_circle_would_be_found() -> None:
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter({"engine": {"serving"}, "serving": {"engine"}}).prepare()
    assert "system" in arrows(WORKERS)["runner"]


def test_no_folder_has_too_many_files() -> None:
    counts = {folder: len([*folder.glob("*.py")]) - 1 for folder in (WORKERS, *WORKERS.rglob("*/"))}
    assert {str(folder): count for folder, count in counts.items() if count > MAX_FILES} == {}
