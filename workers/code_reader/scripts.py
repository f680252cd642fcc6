"""Finds scripts, and the arguments that they declare by argparse."""

import ast

from jobs.messages.code import CodeArgument, CodeEntry
from workers.code_reader.modules import Module, constant, printable

ADD = "add_argument"
PARSE = ("parse_args", "parse_known_args")
NO_VALUE = {"store_true": "False", "store_false": "True", "count": "0"}
"""The default of an option without a value, by its action."""

NO_ARGUMENT = {"?": "None", "*": "[]"}
"""The default of an argument without a name that may be left out, by its number of values."""


def script_of(module: Module) -> CodeEntry | None:
    """Return a module as a script; None if it does nothing when it is started.

    It has `if __name__ == "__main__":`, or reads its arguments outside functions.
    """
    start = next((node for node in module.tree.body if _is_start(node) or _reads_arguments(node)), None)
    if start is None:
        return None
    arguments, dynamic = _arguments(module)
    note = f"{dynamic} argument(s) have names that only running the script shows." if dynamic else ""
    return CodeEntry(
        kind="script", name=module.path, path=module.path, line=start.lineno, arguments=arguments, note=note
    )


def _is_start(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    if not isinstance(node.test.ops[0], ast.Eq):
        return False
    sides = [node.test.left, *node.test.comparators]
    has_name = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return has_name and any(constant(side) == "__main__" for side in sides)


def _reads_arguments(node: ast.stmt) -> bool:
    """Return whether a module's statement calls `parse_args` when the module is imported."""
    # The content of a function or a class is not executed then.
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
        return False
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in PARSE
        for part in ast.walk(node)
    )


def _arguments(module: Module) -> tuple[list[CodeArgument], int]:
    """Return the arguments whose names are constants, and how many others there are."""
    calls = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == ADD
    ]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    arguments, dynamic = [], 0
    for call in calls:
        argument = _argument(module, call)
        if argument is None:
            dynamic += 1
        else:
            arguments.append(argument)
    return arguments, dynamic


def _argument(module: Module, call: ast.Call) -> CodeArgument | None:
    names = [constant(argument) for argument in call.args]
    texts = [name for name in names if isinstance(name, str)]
    if not texts or len(texts) < len(names):
        return None
    # The long name of an option: `--epochs`, not `-e`.
    name = max(texts, key=len)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    default = module.source(keywords.get("default"))
    if default is None and not name.startswith("-"):
        default = NO_ARGUMENT.get(str(constant(keywords.get("nargs"))))
    if default is None and name.startswith("-") and constant(keywords.get("required")) is not True:
        default = NO_VALUE.get(str(constant(keywords.get("action"))), "None")
    described = constant(keywords.get("help"))
    return CodeArgument(
        name=printable(name),
        default=default,
        annotation=module.source(keywords.get("type")),
        help=printable(described) if isinstance(described, str) else None,
        choices=module.source(keywords.get("choices")),
    )
