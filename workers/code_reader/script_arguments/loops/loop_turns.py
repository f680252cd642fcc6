"""Repeats the calls in loops and in helper functions for each turn, as far as a script's text shows them."""

import ast
import copy
from collections.abc import Iterator, Sequence

from workers.code_reader.modules import Module
from workers.code_reader.script_arguments.loops.dataclass_fields import ClassField
from workers.code_reader.script_arguments.loops.folding import NotComputed, fold, names_in, value_in
from workers.code_reader.script_arguments.loops.loop_items import Item, LoopItems
from workers.code_reader.script_arguments.parser_names import (
    Function,
    Names,
    argument_of,
    function_parameters,
    method_of,
)

MOST_CALLS = 1_000
MOST_STEPS = 5
"""Functions around a call that call each other."""

type Turn = dict[str, ast.expr | ClassField]
"""The values of the names in a turn."""


class LoopTurns:
    """The calls that add arguments, with the values of each turn."""

    def __init__(self, module: Module, names: Names, items: LoopItems) -> None:
        self._module, self._names, self._items = module, names, items
        nodes = list(ast.walk(module.tree))
        self._loops = [node for node in nodes if isinstance(node, ast.For)]
        self._functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    def calls(self, call: ast.Call, steps: int = 0) -> list[ast.Call] | None:
        """Return the calls that a call makes; None if only running the script shows them."""
        try:
            return self._calls(call, steps)
        except NotComputed:
            return None

    def _calls(self, call: ast.Call, steps: int) -> list[ast.Call]:
        function = self._around(call)
        loops = [loop for loop in self._loops if _has(loop, call) and (not function or _has(function, loop))]
        loops.sort(key=lambda loop: loop.lineno)
        used = names_in(*call.args, *(each.value for each in call.keywords), *(loop.iter for loop in loops))
        sites = self._sites(function) if function and used & set(function_parameters(function)) else []
        if function is not None and sites and steps < MOST_STEPS:
            turns = [
                _given(site, function) for each in sites for site in self.calls(each, steps + 1) or [each]
            ]
            body: Sequence[ast.stmt] = function.body
        elif loops and used & {name for loop in loops for name in _stored(loop)}:
            turns, body = [{}], [loops[0]]
        else:
            return [self._filled(call, {})]
        found: list[ast.Call] = []
        for turn in turns:
            self._execute(body, turn, call, found)
        return found

    def _around(self, call: ast.Call) -> Function | None:
        around = [node for node in self._functions if _has(node, call)]
        return max(around, key=lambda node: node.lineno, default=None)

    def _sites(self, function: Function) -> list[ast.Call]:
        return [each for each in self._names.calls if method_of(each) == function.name]

    def _execute(self, body: Sequence[ast.stmt], turn: Turn, wanted: ast.Call, found: list[ast.Call]) -> str:
        """Execute the statements of a turn; return the word that ends it, or an empty text."""
        for node in body:
            if isinstance(node, ast.If):
                ended = self._branch(node, turn, wanted, found)
            elif isinstance(node, ast.For):
                ended = self._loop(node, turn, wanted, found)
            elif isinstance(node, ast.With):
                ended = self._execute(node.body, turn, wanted, found)
            elif isinstance(node, ast.Continue | ast.Break | ast.Return | ast.Raise):
                return type(node).__name__
            else:
                if _has(node, wanted):
                    if not isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return):
                        raise NotComputed
                    found.append(self._filled(wanted, turn))
                    if len(found) > MOST_CALLS:
                        raise NotComputed
                _assign(node, turn)
                continue
            if ended:
                return ended
        return ""

    def _branch(self, node: ast.If, turn: Turn, wanted: ast.Call, found: list[ast.Call]) -> str:
        try:
            is_true = bool(value_in(fold(node.test, turn)))
        except NotComputed:
            ends = any(isinstance(p, ast.Continue | ast.Break | ast.Return) for p in ast.walk(node))
            if ends or _has(node, wanted):
                raise
            for name in _stored(node):
                turn.pop(name, None)
            return ""
        return self._execute(node.body if is_true else node.orelse, turn, wanted, found)

    def _loop(self, node: ast.For, turn: Turn, wanted: ast.Call, found: list[ast.Call]) -> str:
        if not _has(node, wanted):
            for name in _stored(node):
                turn.pop(name, None)
            return ""
        for item in self._items.of(node.iter, turn):
            _bind(node.target, item, turn)
            ended = self._execute(node.body, turn, wanted, found)
            if ended not in ("", "Continue"):
                return "" if ended == "Break" else ended
        return ""

    def _filled(self, call: ast.Call, turn: Turn) -> ast.Call:
        """Return a call with the values of a turn, and of the dicts that it takes as its arguments."""
        filled = copy.copy(call)
        filled.args = [_folded(each, turn) for each in call.args]
        filled.args = [
            part
            for each in filled.args
            for part in (self._parts(each.value, turn) if isinstance(each, ast.Starred) else [each])
        ]
        filled.keywords = [keyword for each in call.keywords for keyword in self._keywords(each, turn)]
        return filled

    def _parts(self, node: ast.expr, turn: Turn) -> list[ast.expr]:
        return [item for item in self._items.of(node, turn) if isinstance(item, ast.expr)]

    def _keywords(self, keyword: ast.keyword, turn: Turn) -> Iterator[ast.keyword]:
        value = _folded(keyword.value, turn)
        if keyword.arg is not None:
            yield ast.keyword(keyword.arg, value)
            return
        for key, item in self._items.pairs(value, turn):
            name = value_in(key)
            if not isinstance(name, str) or not isinstance(item, ast.expr):
                raise NotComputed
            yield ast.keyword(name, item)


def _folded(node: ast.expr, turn: Turn) -> ast.expr:
    """Return an expression with the values of its names; one without such names keeps its place."""
    is_text = isinstance(node, ast.BinOp | ast.JoinedStr)
    return fold(node, turn) if is_text or names_in(node) & set(turn) else node


def _has(node: ast.stmt, part: ast.stmt | ast.expr) -> bool:
    if not node.lineno <= part.lineno <= (node.end_lineno or node.lineno):
        return False
    return any(each is part for each in ast.walk(node))


def _stored(node: ast.AST) -> set[str]:
    """Return the names to which a statement assigns values."""
    return {
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def _assign(node: ast.stmt, turn: Turn) -> None:
    """Note the value that a statement assigns; a name whose value is not known has none."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    known = fold(value, turn) if value is not None else None
    for name in _stored(node):
        turn.pop(name, None)
    if known is not None and len(targets) == 1 and isinstance(targets[0], ast.Name):
        turn[targets[0].id] = known


def _bind(target: ast.expr, item: Item, turn: Turn) -> None:
    if isinstance(target, ast.Name):
        if isinstance(item, list):
            known = [part for part in item if isinstance(part, ast.expr)]
            if len(known) < len(item):
                raise NotComputed
            item = ast.Tuple(known, ast.Load())
        turn[target.id] = item
        return
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(item, ast.Tuple | ast.List | list):
        raise NotComputed
    parts: Sequence[Item] = item if isinstance(item, list) else item.elts
    if len(parts) != len(target.elts):
        raise NotComputed
    for each, part in zip(target.elts, parts, strict=True):
        _bind(each, part, turn)


def _given(site: ast.Call, function: Function) -> Turn:
    """Return the values that a call gives to a function."""
    names = function_parameters(function)
    known = {name: value for name in names if (value := argument_of(site, function, name)) is not None}
    return {name: fold(value, {}) for name, value in {**_defaults(function), **known}.items()}


def _defaults(function: Function) -> dict[str, ast.expr]:
    signature = function.args
    positional = [*signature.posonlyargs, *signature.args]
    with_default = positional[len(positional) - len(signature.defaults) :]
    defaults = dict(zip([each.arg for each in with_default], signature.defaults, strict=True))
    named = zip(signature.kwonlyargs, signature.kw_defaults, strict=True)
    return {**defaults, **{each.arg: value for each, value in named if value is not None}}
