"""Finds the texts that the type of an argument reads as true and as false."""

import ast
from collections.abc import Iterable

from workers.code_reader.modules import Module

TRUE = ("true", "True", "TRUE", "yes", "on", "1", "t", "y")
FALSE = ("false", "False", "FALSE", "no", "off", "0", "f", "n")
OF_BUILTIN = {"bool": ["True", ""], "int": ["1", "0"], "float": ["1", "0"]}
"""`bool("False")` is true: of all texts, only the empty one is false."""
OF_FUNCTION = {
    "strtobool": ["true", "false"],
    "loads": ["true", "false"],
    "safe_load": ["true", "false"],
    "literal_eval": ["True", "False"],
    "eval": ["True", "False"],
}
OF_NUMBER = ("int", "float")


def words_of(module: Module, node: ast.expr | None, modules: Iterable[Module]) -> list[str]:
    """Return the texts for true and false; none if they are not known, or a text would stay a text.

    Args:
        module: declares the argument.
        node: its type.
        modules: all of the version, since the type may be a function of another one.
    """
    if node is None:
        return []
    name = module.full_name(node)
    last = name.rpartition(".")[2]
    if name in OF_BUILTIN:
        return OF_BUILTIN[name]
    defined = node if isinstance(node, ast.Lambda) else _defined(module, last, modules)
    if defined is not None:
        return _compared(defined)
    # Another function may read each text as true, as `str` does.
    return OF_FUNCTION.get(last, [])


def _defined(module: Module, name: str, modules: Iterable[Module]) -> ast.AST | None:
    """Return the function or the lambda with a name: of the same file, else of another one."""
    for each in (module, *modules):
        for node in each.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
            if isinstance(node, ast.Assign) and name in _targets(node) and isinstance(node.value, ast.Lambda):
                return node.value
    return None


def _targets(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _compared(function: ast.AST) -> list[str]:
    """Return the texts with which a function compares its argument; none if they are not known."""
    parts = list(ast.walk(function))
    texts = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    called = {part.attr for part in parts if isinstance(part, ast.Attribute)} | {
        part.id for part in parts if isinstance(part, ast.Name)
    }
    true, false = _first(TRUE, texts), _first(FALSE, texts)
    if true is None and false is None:
        # As in `bool(int(text))`.
        numbers = OF_BUILTIN["int"] if called.intersection(OF_NUMBER) else []
        return next((words for name, words in OF_FUNCTION.items() if name in called), numbers)
    # The other one is any other text, written in the same way.
    is_upper = (true or false or "")[:1].isupper()
    return [true or ("True" if is_upper else "true"), false or ("False" if is_upper else "false")]


def _first(words: tuple[str, ...], texts: set[str]) -> str | None:
    return next((word for word in words if word in texts), None)
