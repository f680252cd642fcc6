"""Reads the arguments that a script takes by their places, as in `epochs = int(sys.argv[1])`."""

import ast

from jobs.messages.code import CodeArgument
from workers.code_reader.modules import Module, constant, printable
from workers.code_reader.script_arguments.argparse_arguments import Declared

ARGUMENTS = "sys.argv"
KINDS = ("int", "float")


def declared_by_places(module: Module) -> Declared | None:
    """Return the variables to which a module assigns its first, second, … argument; None without any."""
    found: dict[int, CodeArgument] = {}
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, places = node.targets[0], _places_in(module, node.value)
        if isinstance(target, ast.Name) and len(places) == 1:
            found.setdefault(next(iter(places)), _argument(module, target.id, node.value))
    if not found or sorted(found) != list(range(1, len(found) + 1)):
        return None
    return Declared([found[place] for place in sorted(found)], given_as="value")


def reads_places(module: Module, node: ast.AST) -> bool:
    """Return whether a statement reads an argument by its place."""
    return bool(_places_in(module, node))


def _places_in(module: Module, node: ast.AST) -> set[int]:
    subscripts = [part for part in ast.walk(node) if isinstance(part, ast.Subscript)]
    values = [constant(part.slice) for part in subscripts if module.full_name(part.value) == ARGUMENTS]
    return {value for value in values if isinstance(value, int) and value > 0}


def _argument(module: Module, name: str, value: ast.expr) -> CodeArgument:
    """Return the argument that a variable gets; `… if len(sys.argv) > 1 else 3` has a default."""
    default = value.orelse if isinstance(value, ast.IfExp) else None
    value = value.body if isinstance(value, ast.IfExp) else value
    kind = module.full_name(value.func) if isinstance(value, ast.Call) else ""
    return CodeArgument(
        name=printable(name),
        default=module.source(default),
        annotation=kind if kind in KINDS else None,
        nargs=None if default is None else "?",
    )
