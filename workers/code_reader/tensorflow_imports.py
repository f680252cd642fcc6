"""Finds imports by names that are not installed, and replaces them: Keras from TensorFlow, and kerastuner."""

import ast
from collections.abc import Iterator

from jobs.messages.code import CodeNotice
from workers.code_reader.modules import Module, printable

TENSORFLOW, KERAS = "tensorflow", "keras"
OF_TENSORFLOW = f"{TENSORFLOW}.{KERAS}"
EARLIER, TUNER = "kerastuner", "keras_tuner"
"""The earlier name of KerasTuner, and its present one."""

type Edit = tuple[int, int, int, str]
"""A line, the first and the last byte in it, and the text that takes their place."""


def notices_of_tensorflow(module: Module) -> Iterator[CodeNotice]:
    """Yield the imports from TensorFlow, and those of KerasTuner by its earlier name."""
    for node in _imports(module.tree):
        yield CodeNotice(
            path=module.path, line=node.lineno, message=printable(module.line(node.lineno).strip())
        )


def with_keras(module: Module) -> str:
    """Return a file's text with imports of Keras itself. Uses of other parts of TensorFlow stay."""
    lines = [line.encode() for line in module.lines()]
    # Each import of the whole package, as in several cells, has the same edits of its uses.
    edits = sorted({edit for node in _imports(module.tree) for edit in _edits(module.tree, node)})
    for line, first, last, text in reversed(edits):
        body = lines[line - 1]
        lines[line - 1] = body[:first] + text.encode() + body[last:]
    return b"".join(lines).decode()


def _imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    return [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(_is_inside(alias.name) for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and not node.level and _is_inside(node.module or ""))
    ]


def _is_inside(name: str) -> bool:
    return name.partition(".")[0] in (TENSORFLOW, EARLIER)


def is_replaced(node: ast.Import | ast.ImportFrom) -> bool:
    """Return whether an import is replaced by one of the same from Keras, or from KerasTuner."""
    return bool(_imports(ast.Module([node], []))) and _changed(node) is not None


def uses_more_than_keras(node: ast.AST, alias: str) -> bool:
    """Return whether a part of the code uses TensorFlow, by a name for it, beside its Keras."""
    return len(_of_keras(node, alias)) < len(_uses(node, alias))


def _uses(tree: ast.AST, alias: str) -> list[ast.Name]:
    return [part for part in ast.walk(tree) if isinstance(part, ast.Name) and part.id == alias]


def _of_keras(tree: ast.AST, alias: str) -> list[ast.Attribute]:
    return [
        part
        for part in ast.walk(tree)
        if isinstance(part, ast.Attribute) and part.attr == KERAS
        if isinstance(part.value, ast.Name) and part.value.id == alias
    ]


def _edits(tree: ast.Module, node: ast.Import | ast.ImportFrom) -> Iterator[Edit]:
    if node.end_lineno is None or node.end_col_offset is None:
        return
    changed = _changed(node)
    alias = _whole_tensorflow(node)
    if alias is not None:
        if uses_more_than_keras(tree, alias):
            return
        changed = f"import {KERAS}"
        for part in _of_keras(tree, alias):
            if part.end_lineno == part.lineno and part.end_col_offset is not None:
                yield part.lineno, part.col_offset, part.end_col_offset, KERAS
    if changed is None:
        return
    # A list of names in brackets may be on several lines.
    for line in range(node.lineno, node.end_lineno + 1):
        first = node.col_offset if line == node.lineno else 0
        last = node.end_col_offset if line == node.end_lineno else 10**6
        yield line, first, last, changed if line == node.end_lineno else ""


def _changed(node: ast.Import | ast.ImportFrom) -> str | None:
    """Return the import of the same from Keras; None if Keras does not have it."""
    first = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
    if (first or "").partition(".")[0] == EARLIER:
        return ast.unparse(node).replace(EARLIER, TUNER) if _keeps_names(node) else None
    if isinstance(node, ast.ImportFrom):
        names = ", ".join(ast.unparse(alias) for alias in node.names)
        if node.module == TENSORFLOW and all(alias.name == KERAS for alias in node.names):
            return f"import {names}"
        if (node.module or "").startswith(OF_TENSORFLOW):
            return f"from {(node.module or '').removeprefix(f'{TENSORFLOW}.')} import {names}"
        return None
    if len(node.names) == 1 and node.names[0].name.startswith(OF_TENSORFLOW) and node.names[0].asname:
        return f"import {node.names[0].name.removeprefix(f'{TENSORFLOW}.')} as {node.names[0].asname}"
    return None


def _keeps_names(node: ast.Import | ast.ImportFrom) -> bool:
    """Return whether an import binds names that do not change with the package's name."""
    return isinstance(node, ast.ImportFrom) or all(alias.asname for alias in node.names)


def _whole_tensorflow(node: ast.Import | ast.ImportFrom) -> str | None:
    """Return the name of the whole package, as in `import tensorflow as tf`."""
    if isinstance(node, ast.Import) and len(node.names) == 1 and node.names[0].name == TENSORFLOW:
        return node.names[0].asname or TENSORFLOW
    return None
