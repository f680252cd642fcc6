"""Parses the modules of the packages and lists their imports."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("jobs", "transport", "webapp", "workers")


@cache
def modules() -> dict[str, ast.Module]:
    """Return every module by its dotted name; migrations are left out."""
    trees = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "migrations" not in parts:
                name = ".".join(parts).removesuffix(".__init__")
                trees[name] = ast.parse(path.read_text(), filename=str(path))
    return trees


def imports(name: str) -> set[str]:
    """Return Trainyard's modules that a module imports, also inside functions and for type checking."""
    return {target for target in _imported(modules()[name]) if target != name}


def _imported(tree: ast.Module) -> Iterator[str]:
    names = modules()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                module = node.module or ""
                inside = f"{module}.{alias.name}"
                yield from (target for target in (inside if inside in names else module,) if target in names)
