"""Finds the arguments that the `fit` of a HyperModel class takes, and those that it sets itself.

KerasTuner passes on what `tuner.search` was given, so `model.fit(*args, epochs=hp.Int(…), **kwargs)` runs if
the search has no `epochs`. An experiment always has some, so an argument that a class sets itself is left
out.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Set
from typing import Any

REPLACEABLE = ("batch_size", "epochs", "shuffle", "validation_data")
"""Arguments that a `fit` may set itself. Charts and stopping depend on the callbacks."""


def accepted(hypermodel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that a class's `fit` gets: those that it does not set itself."""
    left_out = replaced(hypermodel)
    return {name: value for name, value in arguments.items() if name not in left_out}


def replaced(hypermodel: Any) -> frozenset[str]:
    """Return which of `REPLACEABLE` a class's `fit` does not take, or sets itself beside a `**kwargs`."""
    parameters = inspect.signature(hypermodel.fit).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    others = [name for name in REPLACEABLE if name not in parameters]
    if not takes_any:
        return frozenset(others)
    tree = [node for part in _sources(type(hypermodel)) for node in ast.walk(ast.parse(part))]
    functions = (node for node in tree if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None)
    collected = {function.args.kwarg.arg for function in functions if function.args.kwarg is not None}
    used = {name for node in tree for name in _read_from(node, collected)}
    set_by_code = {name for node in tree if isinstance(node, ast.Call) for name in _beside_others(node)}
    return frozenset(name for name in others if name in set_by_code - used)


def _sources(kind: type) -> Iterator[str]:
    """Yield the source of a class and of those that it inherits from, apart from those of packages."""
    for part in kind.__mro__:
        if part.__module__.partition(".")[0] == "keras_tuner":
            return
        try:
            yield textwrap.dedent(inspect.getsource(part))
        # The class was made without a file.
        except (OSError, TypeError):
            continue


def _read_from(node: ast.AST, collected: Set[str]) -> Iterator[str]:
    """Yield the name that an expression reads from `**kwargs`, as in `kwargs.pop("epochs")`."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and _is_one_of(node.value, collected):
        key = node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        key = node.args[0] if _is_one_of(node.func.value, collected) else None
    elif isinstance(node, ast.Compare) and _is_one_of(node.comparators[0], collected):
        key = node.left
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        yield key.value


def _is_one_of(node: ast.expr, names: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _beside_others(call: ast.Call) -> Iterator[str]:
    """Yield the names that a call sets beside `**kwargs`: Python refuses a name that is in both."""
    names = [keyword.arg for keyword in call.keywords]
    if None in names:
        yield from (name for name in names if name is not None)
