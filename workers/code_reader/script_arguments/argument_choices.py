"""Reads the values between which an argument of a script chooses."""

import ast
from collections.abc import Sequence

from jobs.messages.code import MAX_FOUND
from workers.code_reader.modules import Module, constant

COPIES = ("list", "tuple", "sorted", "set", "frozenset")
MOST_STEPS = 5


def choices_of(module: Module, node: ast.expr | None) -> str | None:
    """Return the choices as a list of Python, if they are known; else as they are written."""
    values = _values(module, node)
    source = module.source(node)
    if not values or isinstance(node, ast.List | ast.Tuple) or len(values) > MAX_FOUND:
        return source
    text = repr(values)
    return text if text.isprintable() else source


def value_of(module: Module, node: ast.expr | None) -> ast.expr | None:
    """Return the expression assigned to a name of the module, if there is one; else the node."""
    if not isinstance(node, ast.Name):
        return node
    stored = [part for part in ast.walk(module.tree) if isinstance(part, ast.Name) and part.id == node.id]
    if sum(isinstance(part.ctx, ast.Store) for part in stored) != 1:
        return node
    for each in module.tree.body:
        if isinstance(each, ast.Assign) and any(target in stored for target in each.targets):
            return each.value
    return node


def _values(module: Module, node: ast.expr | None, steps: int = 0) -> list[object] | None:
    node = value_of(module, node)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return _constants(node.elts)
    if isinstance(node, ast.Dict):
        return _constants(node.keys)
    if isinstance(text := constant(node), str):
        # Each of its characters is a choice.
        return list(text)
    if not isinstance(node, ast.Call) or steps > MOST_STEPS or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "keys" and not node.args:
        return _values(module, node.func.value, steps + 1)
    name = module.full_name(node.func)
    if name == "range":
        return _range(node.args)
    values = _values(module, node.args[0], steps + 1) if name in COPIES and len(node.args) == 1 else None
    return sorted(values, key=str) if values is not None and name == "sorted" else values


def _constants(nodes: Sequence[ast.expr | None]) -> list[object] | None:
    """Return the values of expressions; None if one of them is no constant."""
    try:
        return [ast.literal_eval(node) for node in nodes if node is not None] if None not in nodes else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _range(arguments: Sequence[ast.expr]) -> list[object] | None:
    numbers = _constants(arguments) or []
    whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    if not 1 <= len(whole) == len(numbers) <= 3 or 0 in whole[2:]:
        return None
    values = range(*whole)
    return list(values) if len(values) <= MAX_FOUND else None
