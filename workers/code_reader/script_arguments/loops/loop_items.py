"""Finds the items that a loop goes through, as far as a script's text shows them."""

import ast
from collections.abc import Sequence

from workers.code_reader.modules import Module, constant
from workers.code_reader.script_arguments.loops.dataclass_fields import ClassField, DataClasses
from workers.code_reader.script_arguments.loops.folding import Meanings, NotComputed, fold
from workers.code_reader.script_arguments.parser_names import Function, Names, method_of

CHANGES = ("append", "extend", "insert", "remove", "pop", "update", "setdefault", "clear", "add", "discard")
"""Methods that change a list or a dict."""
COPIES = ("list", "tuple", "sorted", "reversed", "iter", "set", "frozenset")
TYPES_OF_FIELDS = ("typing.get_type_hints", "inspect.get_annotations")
VALUES_OF_FIELDS = ("vars", "dataclasses.asdict", "asdict")
MOST_STEPS = 10

type Item = ast.expr | ClassField | list["Item"]
"""An expression, a field of a data class, or several of them as a tuple."""


class LoopItems:
    """The items of lists, dicts and data classes in a module."""

    def __init__(self, module: Module, names: Names, classes: DataClasses) -> None:
        self._module, self._names, self._classes = module, names, classes
        self._changed = _changed_names(module)
        self._functions = {
            node.name: node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)
        }

    def of(self, node: ast.expr, meanings: Meanings, steps: int = 0) -> list[Item]:
        """Return the items that a loop goes through.

        Raises:
            NotComputed: only running the script shows them.
        """
        _check(steps)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            if any(isinstance(each, ast.Starred) for each in node.elts):
                raise NotComputed
            return [fold(each, meanings) for each in node.elts]
        if isinstance(node, ast.Call) and (items := self._of_call(node, meanings, steps)) is not None:
            return items
        if isinstance(node, ast.Name) and (known := self._meaning(node, meanings)) is not None:
            return self.of(known, meanings, steps + 1)
        return [key for key, _ in self.pairs(node, meanings, steps + 1)]

    def _of_call(self, node: ast.Call, meanings: Meanings, steps: int) -> list[Item] | None:
        name, method = self._module.full_name(node.func), method_of(node)
        if name in ("dataclasses.fields", "fields") and len(node.args) == 1:
            return [*self._fields(node.args[0], meanings)]
        if name == "enumerate" and node.args:
            begins = constant(node.args[1]) if len(node.args) > 1 else 0
            if node.keywords or not isinstance(begins, int):
                raise NotComputed
            items = self.of(node.args[0], meanings, steps + 1)
            return [[ast.Constant(begins + place), item] for place, item in enumerate(items)]
        if name == "zip" and node.args:
            several = [self.of(each, meanings, steps + 1) for each in node.args]
            return [[*row] for row in zip(*several, strict=False)]
        if name in COPIES and len(node.args) == 1:
            return self.of(node.args[0], meanings, steps + 1)
        if isinstance(node.func, ast.Attribute) and method in ("items", "keys", "values") and not node.args:
            pairs = self.pairs(node.func.value, meanings, steps + 1)
            if method == "items":
                return [[key, value] for key, value in pairs]
            return [pair[method == "values"] for pair in pairs]
        return None

    def pairs(self, node: ast.expr, meanings: Meanings, steps: int = 0) -> list[tuple[ast.expr, Item]]:
        """Return the keys and values of a dict.

        Raises:
            NotComputed: only running the script shows them.
        """
        _check(steps)
        if isinstance(node, ast.Dict):
            pairs: list[tuple[ast.expr, Item]] = []
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    pairs += self.pairs(value, meanings, steps + 1)
                else:
                    pairs.append((fold(key, meanings), fold(value, meanings)))
            return _last_of_each(pairs)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = (self.pairs(side, meanings, steps + 1) for side in (node.left, node.right))
            return _last_of_each([pair for side in sides for pair in side])
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return self._values(node.value, meanings)
        if isinstance(node, ast.Attribute) and node.attr == "__dataclass_fields__":
            return [(ast.Constant(each.name), each) for each in self._fields(node.value, meanings)]
        if isinstance(node, ast.Attribute) and node.attr == "__annotations__":
            return [(ast.Constant(each.name), each.type) for each in self._fields(node.value, meanings)]
        if isinstance(node, ast.Attribute) and node.attr == "_field_defaults":
            return self._values(ast.Call(node.value, [], []), meanings)
        if isinstance(node, ast.Call):
            return self._pairs_of_call(node, meanings, steps)
        if isinstance(node, ast.Name) and (known := self._meaning(node, meanings)) is not None:
            return self.pairs(known, meanings, steps + 1)
        raise NotComputed

    def _pairs_of_call(self, node: ast.Call, meanings: Meanings, steps: int) -> list[tuple[ast.expr, Item]]:
        name = self._module.full_name(node.func)
        if name == "dict" and len(node.args) <= 1:
            pairs = self.pairs(node.args[0], meanings, steps + 1) if node.args else []
            if any(each.arg is None for each in node.keywords):
                raise NotComputed
            named = [(ast.Constant(each.arg), fold(each.value, meanings)) for each in node.keywords]
            return _last_of_each([*pairs, *named])
        if name in VALUES_OF_FIELDS and len(node.args) == 1:
            return self._values(node.args[0], meanings)
        if name in TYPES_OF_FIELDS and node.args:
            return [(ast.Constant(each.name), each.type) for each in self._fields(node.args[0], meanings)]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "_asdict":
            return self._values(node.func.value, meanings)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            return self.pairs(node.func.value, meanings, steps + 1)
        if isinstance(node.func, ast.Name) and (function := self._functions.get(node.func.id)) is not None:
            return self.pairs(_returned(function), {}, steps + 1)
        raise NotComputed

    def _meaning(self, node: ast.Name, meanings: Meanings) -> ast.expr | None:
        """Return the only value of a name that nothing changes; None if it has another kind of value.

        Raises:
            NotComputed: it has several values, or is changed.
        """
        known = meanings.get(node.id)
        if isinstance(known, ast.expr):
            return known
        if node.id in self._changed:
            raise NotComputed
        values = self._names.values_of(node.id)
        if len(values) > 1:
            raise NotComputed
        return values[0] if values else None

    def _fields(self, node: ast.expr, meanings: Meanings) -> list[ClassField]:
        """Return the fields of a data class, or of one of its objects."""
        for _ in range(MOST_STEPS):
            if isinstance(node, ast.Call):
                node = node.func
            if (fields := self._classes.fields_of(node)) is not None:
                return fields
            known = self._meaning(node, meanings) if isinstance(node, ast.Name) else None
            if known is None:
                break
            node = known
        raise NotComputed

    def _values(self, node: ast.expr, meanings: Meanings) -> list[tuple[ast.expr, Item]]:
        """Return the fields of an object of a data class with their values."""
        if isinstance(node, ast.Name) and (known := self._meaning(node, meanings)) is not None:
            node = known
        if not isinstance(node, ast.Call) or node.args:
            raise NotComputed
        given = {each.arg: fold(each.value, meanings) for each in node.keywords}
        values = {each.name: given.get(each.name) or each.default for each in self._fields(node, meanings)}
        if None in given or None in values.values():
            raise NotComputed
        return [(ast.Constant(name), value) for name, value in values.items() if value is not None]


def _last_of_each(pairs: Sequence[tuple[ast.expr, Item]]) -> list[tuple[ast.expr, Item]]:
    """Return the pairs of a dict: of two with one key, the place of the first and the value of the last."""
    by_key = {ast.dump(key): (key, value) for key, value in pairs}
    return [by_key[key] for key in dict.fromkeys(ast.dump(key) for key, _ in pairs)]


def _check(steps: int) -> None:
    if steps > MOST_STEPS:
        raise NotComputed


def _returned(function: Function) -> ast.expr:
    """Return the only expression that a function without changes returns."""
    returned = [part.value for part in ast.walk(function) if isinstance(part, ast.Return)]
    if len(returned) != 1 or returned[0] is None:
        raise NotComputed
    return returned[0]


def _changed_names(module: Module) -> set[str]:
    """Return the names of lists and dicts that a module changes after they were made."""
    changed = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            changed.add(ast.unparse(node.value))
        elif isinstance(node, ast.AugAssign):
            changed.add(ast.unparse(node.target))
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES
        ):
            changed.add(ast.unparse(node.func.value))
    return changed
