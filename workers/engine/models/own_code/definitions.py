"""Finds which files of user code define a name. The files are read, not executed."""

import ast
import traceback
from collections.abc import Set as AbstractSet
from pathlib import Path

from workers.code_reader.builders import statements_of
from workers.engine.errors import CodeImportFailure
from workers.engine.models.own_code.in_use import code_folder


def file_of(path: str, name: str) -> str:
    """Return which file defines an entry, by its path.

    Args:
        path: the file's path; empty for the first that defines it.
        name: names the function or class.
    """
    defining = [path] if path and name in _defined(code_folder() / path) else []
    if not path:
        defining = definitions().get(name, [])
    if not defining:
        raise CodeImportFailure(f"no file of the code defines {name}")
    return defining[0]


def definitions() -> dict[str, list[str]]:
    """Return the files that define each name, ordered by their paths. They are read, not executed."""
    folder, files_of_name = code_folder(), dict[str, list[str]]()
    for path in sorted(folder.rglob("*.py")):
        for name in _defined(path):
            files_of_name.setdefault(name, []).append(str(path.relative_to(folder)))
    return files_of_name


def _defined(file: Path) -> set[str]:
    """Return which functions and classes a file defines, by name; none if it cannot be parsed."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return set()
    names: set[str] = set()
    for node in statements_of(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            # A lambda, or a function that another one makes.
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def defined_after(path: Path, failure: CodeImportFailure, names: AbstractSet[str]) -> str:
    """Return one of these names whose last definition is after the line that failed; empty for none."""
    error = failure.__cause__
    if isinstance(error, ModuleNotFoundError):
        return ""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    top = [frame.lineno or 0 for frame in frames if frame.filename == str(path) and frame.name == "<module>"]
    if not top:
        return ""
    lines = {
        node.name: node.lineno
        for node in statements_of(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    return next((name for name in sorted(names) if lines.get(name, 0) > max(top)), "")
