"""Finds the arguments that the `fit` of a HyperModel class takes, and those that it sets itself.

KerasTuner passes on what `tuner.search` was given, so `model.fit(*args, epochs=hp.Int(…), **kwargs)` runs if
the search has no `epochs`. An experiment always has some, so an argument that a class sets itself is left
out.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

REPLACEABLE = ("batch_size", "epochs", "shuffle", "validation_data")
"""Arguments that a `fit` may set itself. Charts and stopping depend on the callbacks."""


def accepted(hypermodel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that a class's `fit` gets: those that it does not set itself in a call."""
    left_out = _refused(hypermodel)
    return {name: value for name, value in arguments.items() if name not in left_out}


def replaced(hypermodel: Any) -> frozenset[str]:
    """Return which of `REPLACEABLE` a class's `fit` does not take, or sets itself."""
    parameters = _parameters(hypermodel)
    tree, collected = _code_of(hypermodel)
    used = {name for node in tree for name in _read_from(node, collected)}
    overwritten = {name for node in tree for name in _overwritten(node, collected)} - used - {*parameters}
    return _refused(hypermodel) | overwritten.intersection(REPLACEABLE)


def _refused(hypermodel: Any) -> frozenset[str]:
    """Return which of `REPLACEABLE` a class's `fit` does not take, or sets itself beside a `**kwargs`."""
    parameters = _parameters(hypermodel)
    others = [name for name in REPLACEABLE if name not in parameters]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return frozenset(others)
    tree, collected = _code_of(hypermodel)
    used = {name for node in tree for name in _read_from(node, collected)}
    set_by_code = {name for node in tree if isinstance(node, ast.Call) for name in _beside_others(node)}
    return frozenset(name for name in others if name in set_by_code - used)


def _parameters(hypermodel: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(hypermodel.fit).parameters


def _code_of(hypermodel: Any) -> tuple[list[ast.AST], frozenset[str]]:
    """Return all nodes of a class's source, and the names of the `**kwargs` in it."""
    tree = [node for part in _sources(type(hypermodel)) for node in ast.walk(_parsed(part))]
    functions = (node for node in tree if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None)
    return tree, frozenset(node.args.kwarg.arg for node in functions if node.args.kwarg is not None)


def _sources(kind: type) -> Iterator[str]:
    """Yield the source of a class and of those that it inherits from, apart from those of packages."""
    for part in kind.__mro__:
        if part.__module__.partition(".")[0] == "keras_tuner":
            return
        try:
            yield inspect.getsource(part)
        # The class was made without a file.
        except (OSError, TypeError):
            continue


def _parsed(source: str) -> ast.Module:
    """Parse a class. It may stand inside a block, with texts whose lines begin further left."""
    return ast.parse(f"if True:\n{source}" if source[:1].isspace() else source)


def _read_from(node: ast.AST, collected: Set[str]) -> Iterator[str]:
    """Yield the name that an expression reads from `**kwargs`, as in `kwargs.pop("epochs")`."""
    key: ast.expr | None = None
    if isinstance(node, ast.AugAssign):
        key = _key_in(node.target, collected)
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Store):
        key = _key_in(node, collected)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        key = node.args[0] if _is_one_of(node.func.value, collected) else None
    elif isinstance(node, ast.Compare) and _is_one_of(node.comparators[0], collected):
        key = node.left
    yield from _texts([key])


def _overwritten(node: ast.AST, collected: Set[str]) -> Iterator[str]:
    """Yield the names of arguments that code puts into `**kwargs` in any case, or into a copy.

    Values that a branch or a loop sets are left out, since the other branch has the passed ones.
    """
    if isinstance(node, ast.Dict):
        # Only entries after the copied ones replace them.
        copied = [
            i for i, key in enumerate(node.keys) if key is None and _is_one_of(node.values[i], collected)
        ]
        yield from _texts(node.keys[copied[-1] :] if copied else [])
    if not isinstance(node, ast.FunctionDef):
        return
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield from _texts(_key_in(target, collected) for target in statement.targets)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            yield from _updated(statement.value, collected)


def _updated(call: ast.Call, collected: Set[str]) -> Iterator[str]:
    """Yield the names that `kwargs.update(…)` sets."""
    called = call.func
    if isinstance(called, ast.Attribute) and called.attr == "update" and _is_one_of(called.value, collected):
        yield from (keyword.arg for keyword in call.keywords if keyword.arg is not None)
        yield from _texts(key for part in call.args if isinstance(part, ast.Dict) for key in part.keys)


def _key_in(node: ast.expr, collected: Set[str]) -> ast.expr | None:
    """Return the key in `kwargs[key]`."""
    return node.slice if isinstance(node, ast.Subscript) and _is_one_of(node.value, collected) else None


def _texts(keys: Iterable[ast.expr | None]) -> Iterator[str]:
    for key in keys:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value


def _is_one_of(node: ast.expr, names: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _beside_others(call: ast.Call) -> Iterator[str]:
    """Yield the names that a call sets beside `**kwargs`: Python refuses a name that is in both."""
    names = [keyword.arg for keyword in call.keywords]
    if None in names:
        yield from (name for name in names if name is not None)
