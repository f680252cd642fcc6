"""Finds the names of the module that a statement reads, binds and calls."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from workers.code_reader.modules import Module

type Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
"""Parts of the code that are executed when they are called, and not when they are defined."""


@dataclass
class Use:
    """The names of the module that a statement uses.

    Attributes:
        reads: also those that its functions read once they are called.
        asks: those that it reads when it is executed itself.
        binds: with those of its functions and classes, if it is a block.
        calls: the full names of the functions that it calls when it is executed itself.
    """

    reads: set[str] = field(default_factory=set)
    asks: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)


def use_of(module: Module, node: ast.stmt) -> Use:
    """Return the names that a statement of the module uses."""
    use = Use(reads=set(_reads([node])), binds=set(_binds([node])))
    for part in executed(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            use.asks.add(part.id)
        elif isinstance(part, ast.Call):
            use.calls.add(module.full_name(part.func) or _last(part.func))
    return use


def executed(*nodes: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of statements, without the bodies of their functions and classes."""
    waiting = list(nodes)
    while waiting:
        part = waiting.pop()
        yield part
        is_definition = isinstance(part, (*LATER, ast.ClassDef))
        waiting += _outside(part) if is_definition else ast.iter_child_nodes(part)


def holders(node: ast.stmt) -> set[str]:
    """Return the names whose objects a statement may change: those of which it calls a method."""
    return (
        {
            part.func.value.id
            for part in executed(node)
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
            if isinstance(part.func.value, ast.Name)
        }
        if isinstance(node, ast.Expr | ast.For | ast.While | ast.If | ast.With)
        else set()
    )


def _outside(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a definition that are executed around it: decorators, defaults and bases."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    if not isinstance(node, LATER):
        return []
    signature = node.args
    defaults = [*signature.defaults, *filter(None, signature.kw_defaults)]
    if isinstance(node, ast.Lambda):
        return [*defaults]
    hints = [argument.annotation for argument in _arguments(node)]
    return [*node.decorator_list, *defaults, *filter(None, [*hints, node.returns])]


def _reads(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names that are read, apart from a function's own ones."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        if isinstance(node, LATER):
            local_names = _own_names(node)
            yield from (name for name in _reads(_body(node)) if name not in local_names)
            waiting += _outside(node)
        else:
            waiting += ast.iter_child_nodes(node)


def _own_names(node: Function) -> set[str]:
    """Return the names that belong to a function alone: its arguments, and those that it binds."""
    body = _body(node)
    shared = {name for part in executed(*body) if isinstance(part, ast.Global) for name in part.names}
    return {argument.arg for argument in _arguments(node)} | set(_binds(body)) - shared


def _binds(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names that are bound, apart from those inside of functions and classes."""
    for node in executed(*nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(
            node,
            ast.FunctionDef
            | ast.AsyncFunctionDef
            | ast.ClassDef
            | ast.ExceptHandler
            | ast.MatchAs
            | ast.MatchStar,
        ):
            yield from filter(None, [node.name])


def _body(node: Function) -> Sequence[ast.AST]:
    return [node.body] if isinstance(node, ast.Lambda) else node.body


def _arguments(node: Function) -> list[ast.arg]:
    signature = node.args
    stars = [argument for argument in (signature.vararg, signature.kwarg) if argument is not None]
    return [*signature.posonlyargs, *signature.args, *signature.kwonlyargs, *stars]


def _last(node: ast.expr) -> str:
    """Return the method's name in a call such as `make().fit()`."""
    return node.attr if isinstance(node, ast.Attribute) else ""
