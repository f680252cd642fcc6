"""Finds the meanings of names in a script: assigned values, turns of loops, and arguments of functions."""

import ast
from collections.abc import Iterator

from workers.code_reader.modules import Module, constant

type Function = ast.FunctionDef | ast.AsyncFunctionDef


class Names:
    """The meanings of names in a module, without regard to the order in which functions are called.

    Attributes:
        calls: all calls, in the order of their lines.
    """

    def __init__(self, module: Module) -> None:
        nodes = list(ast.walk(module.tree))
        self.calls = sorted(
            (node for node in nodes if isinstance(node, ast.Call)),
            key=lambda call: (call.lineno, call.col_offset),
        )
        self._bound: dict[str, list[tuple[int, ast.expr]]] = {}
        self._functions = {
            node.name: node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self._loops = [loop for node in nodes for loop in _loops_of(node)]
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    self._bound.setdefault(ast.unparse(target), []).append((node.lineno, node.value))
        for values in self._bound.values():
            values.sort(key=lambda pair: pair[0])

    def bound(self, node: ast.expr, line: int) -> ast.expr | None:
        """Return the value that was last assigned to a name, an attribute or an item before a line."""
        values = self._bound.get(ast.unparse(node), [])
        before = [value for at, value in values if at <= line]
        return before[-1] if before else values[0][1] if values else None

    def meanings(self, node: ast.expr, line: int) -> list[ast.expr]:
        """Return the expressions that a name, an attribute or an item may be.

        Empty if nothing assigns it, and None as a constant where only running the script shows the value.
        """
        key = ast.unparse(node)
        around = self._around(line)
        if around is not None and key in function_parameters(around):
            given = [value for call in self.calls if (value := argument_of(call, around, key)) is not None]
            if given:
                return given
        turns = self._turns(key, line)
        if turns is not None:
            return turns
        value = self.bound(node, line)
        if value is None and isinstance(node, ast.Subscript):
            return self._items_of(node, line)
        return [] if value is None else [value]

    def _items_of(self, node: ast.Subscript, line: int) -> list[ast.expr]:
        """Return the values that an item of a dict may be, if its key alone does not show it."""
        holder = self.bound(node.value, line)
        if isinstance(holder, ast.Dict) and holder.keys:
            pairs = zip(holder.keys, holder.values, strict=True)
            wanted = constant(node.slice)
            exact = [value for key, value in pairs if wanted is not None and constant(key) == wanted]
            return exact or holder.values
        return self._stored_in(node.value) or [ast.Constant(None, lineno=line, col_offset=0)]

    def _stored_in(self, node: ast.expr) -> list[ast.expr]:
        """Return all values that are assigned to items of a dict or a list."""
        start = f"{ast.unparse(node)}["
        return [value for key, pairs in self._bound.items() if key.startswith(start) for _, value in pairs]

    def texts(self, node: ast.expr, line: int, steps: int = 0) -> list[str] | None:
        """Return the texts that an expression may be; None if one of them is not known."""
        if isinstance(value := constant(node), str):
            return [value]
        meanings = self.meanings(node, line) if isinstance(node, ast.Name) and steps < 3 else []
        several = [self.texts(each, each.lineno, steps + 1) for each in meanings]
        if not several or None in several:
            return None
        return [text for texts in several for text in texts or ()]

    def keys_of(self, node: ast.expr) -> list[str]:
        """Return the names that hold an object: its own, or those that the called function returns."""
        if not isinstance(node, ast.Call):
            return [ast.unparse(node)]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        function = self._functions.get(name)
        if function is None:
            return []
        returns = [part.value for part in ast.walk(function) if isinstance(part, ast.Return)]
        return [ast.unparse(value) for value in returns if isinstance(value, ast.Name | ast.Attribute)]

    def values_of(self, key: str) -> list[ast.expr]:
        """Return all values that are assigned to a name."""
        return [value for _, value in self._bound.get(key, [])]

    def _around(self, line: int) -> Function | None:
        """Return the innermost function around a line."""
        around = [
            node
            for node in self._functions.values()
            if node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def _turns(self, key: str, line: int) -> list[ast.expr] | None:
        """Return the values that a variable has in the turns of a loop around a line; None without one."""
        for first, last, loop in reversed(self._loops):
            if not first <= line <= last:
                continue
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
            places = [place for place, target in enumerate(targets) if ast.unparse(target) == key]
            if places:
                items = list(self._items(loop.iter, line))
                if isinstance(loop.target, ast.Tuple):
                    rows = [item.elts for item in items if isinstance(item, ast.Tuple | ast.List)]
                    items = [row[places[0]] for row in rows if len(row) == len(targets)]
                return items or [ast.Constant(None, lineno=line, col_offset=0)]
        return None

    def _items(self, node: ast.expr, line: int) -> Iterator[ast.expr]:
        """Yield the items that a loop goes through."""
        if isinstance(node, ast.Name | ast.Attribute) and (value := self.bound(node, line)) is not None:
            node = value
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield from node.elts
        elif isinstance(node, ast.Dict):
            yield from (key for key in node.keys if key is not None)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder = self.bound(node.func.value, line) or node.func.value
            if isinstance(holder, ast.Dict) and node.func.attr == "items":
                pairs = zip(holder.keys, holder.values, strict=True)
                yield from (
                    ast.Tuple([key, value], ast.Load(), lineno=key.lineno)
                    for key, value in pairs
                    if key is not None
                )
            elif isinstance(holder, ast.Dict) and node.func.attr == "values":
                yield from holder.values or self._stored_in(node.func.value)
            elif isinstance(holder, ast.Dict):
                yield from filter(None, holder.keys)


def _loops_of(node: ast.AST) -> list[tuple[int, int, ast.For | ast.comprehension]]:
    """Return a loop with its first and last line; of a comprehension all of its loops."""
    if isinstance(node, ast.For):
        return [(node.lineno, node.end_lineno or node.lineno, node)]
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return [(node.lineno, node.end_lineno or node.lineno, each) for each in node.generators]
    return []


def function_parameters(function: Function) -> list[str]:
    """Return the names of a function's arguments, in their order."""
    signature = function.args
    return [each.arg for each in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)]


def argument_of(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """Return the value that a call of a function gives to its argument; None for another call."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if called != function.name:
        return None
    names = function_parameters(function)
    names = names[1:] if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]) else names
    given = dict(zip(names, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    return given.get(name)


def method_of(call: ast.Call) -> str:
    """Return the name of the method or function that is called."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def given_to(call: ast.Call) -> list[tuple[str | None, ast.expr]]:
    """Return the names and values given to a call, also by `**{…}`; None is a name that is not known."""
    given: list[tuple[str | None, ast.expr]] = []
    for each in call.keywords:
        if each.arg is None and isinstance(each.value, ast.Dict):
            keys = [None if key is None else constant(key) for key in each.value.keys]
            names = [key if isinstance(key, str) else None for key in keys]
            given += zip(names, each.value.values, strict=True)
        else:
            given.append((each.arg, each.value))
    return given
