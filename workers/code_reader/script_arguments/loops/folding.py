"""Computes the expressions of a loop's turn, as far as they consist of constants and names of types."""

import ast
import copy
import re
from collections.abc import Callable, Mapping

from workers.code_reader.script_arguments.loops.dataclass_fields import ClassField

TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str, "list": list,
                          "tuple": tuple, "dict": dict, "set": set}  # fmt: skip
METHODS = ("replace", "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "format",
           "removeprefix", "removesuffix", "title", "capitalize", "join", "split")  # fmt: skip
COMPARED: dict[type, Callable[[object, object], bool]] = {
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
    ast.In: lambda left, right: left in right,  # type: ignore[operator]
    ast.NotIn: lambda left, right: left not in right,  # type: ignore[operator]
}
MAX_TEXT = 1_000
"""Characters of a text from which another one is computed."""
WIDTH = re.compile(r"%[^%s]*[\d*]|\{[^}]*:")
"""A format with a width, of which the text may be large."""

type Meanings = Mapping[str, "ast.expr | ClassField"]
"""The values of the names in a turn."""


class NotComputed(Exception):
    """Only running the script shows a value."""


def value_in(node: ast.expr | None) -> object:
    """Return the value of a computed expression, a type for the name of one.

    Raises:
        NotComputed: it is not known.
    """
    if isinstance(node, ast.Name) and node.id in TYPES:
        return TYPES[node.id]
    if isinstance(node, ast.Tuple | ast.List) and any(isinstance(each, ast.Name) for each in node.elts):
        return tuple(value_in(each) for each in node.elts)
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise NotComputed from None


def fold(node: ast.expr, meanings: Meanings) -> ast.expr:
    """Return an expression with the values of its names, computed as far as possible, without a place."""
    folded: ast.expr = _Folder(meanings).visit(copy.deepcopy(node))
    for part in ast.walk(folded):
        if isinstance(part, ast.expr):
            part.end_lineno = part.end_col_offset = None
    return folded


def names_in(*nodes: ast.AST) -> set[str]:
    """Return the names that expressions use."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


class _Folder(ast.NodeTransformer):
    """Replaces names by their values, and computes expressions of constants."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._meanings.get(node.id)
        return copy.deepcopy(value) if isinstance(value, ast.expr) else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        holder = node.value
        field = self._meanings.get(holder.id) if isinstance(holder, ast.Name) else None
        if isinstance(field, ClassField):
            return _of_field(field, node)
        self.generic_visit(node)
        if node.attr == "__name__" and isinstance(node.value, ast.Name) and node.value.id in TYPES:
            return ast.Constant(node.value.id)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return _computed(node, _call_value)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _computed(node, _operation_value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        return _computed(node, _joined_value)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        return _item(node.value, node.slice) or node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return _computed(node, _comparison_value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return _computed(node, lambda each: not value_in(each.operand))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        stops = isinstance(node.op, ast.Or)
        for place, part in enumerate(node.values):
            try:
                if bool(value_in(part)) is stops or place == len(node.values) - 1:
                    return part
            except NotComputed:
                return node
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        try:
            return node.body if value_in(node.test) else node.orelse
        except NotComputed:
            return node


def _computed[Node: ast.expr](node: Node, compute: Callable[[Node], object]) -> ast.expr:
    """Return a node's value as an expression; the node itself if it is not known."""
    try:
        value = compute(node)
        if isinstance(value, type):
            return ast.Name(value.__name__, ast.Load())
        if isinstance(value, str) and len(value) > MAX_TEXT:
            return node
        return ast.parse(repr(value), mode="eval").body
    except (NotComputed, TypeError, ValueError, SyntaxError, LookupError, MemoryError, RecursionError):
        return node


def _of_field(field: ClassField, node: ast.Attribute) -> ast.expr:
    if node.attr == "name":
        return ast.Constant(field.name)
    if node.attr in ("type", "annotation"):
        return copy.deepcopy(field.type)
    if node.attr == "default" and field.default is not None:
        return copy.deepcopy(field.default)
    if node.attr == "metadata":
        return ast.Dict([ast.Constant(key) for key in field.metadata], list(field.metadata.values()))
    return node


def _call_value(node: ast.Call) -> object:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and 1 <= len(node.args) <= 2:
        found = _item(node.func.value, node.args[0])
        if found is None and not isinstance(node.func.value, ast.Dict):
            raise NotComputed
        return value_in(found if found is not None else node.args[1] if len(node.args) > 1 else None)
    if node.keywords and not (isinstance(node.func, ast.Attribute) and node.func.attr == "format"):
        raise NotComputed
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        text = value_in(node.func.value)
        if not isinstance(text, str) or len(text) > MAX_TEXT or WIDTH.search(text):
            raise NotComputed
        named = {each.arg: value_in(each.value) for each in node.keywords if each.arg is not None}
        return getattr(text, node.func.attr)(*map(value_in, node.args), **named)
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    values = [value_in(each) for each in node.args]
    if name == "type" and len(values) == 1:
        return type(values[0])
    if name == "isinstance" and len(values) == 2:
        return isinstance(values[0], values[1])  # type: ignore[arg-type]
    if name == "issubclass" and len(values) == 2:
        return issubclass(values[0], values[1])  # type: ignore[arg-type]
    if name in ("str", "len", "bool") and len(values) == 1:
        return {"str": str, "len": len, "bool": bool}[name](values[0])  # type: ignore[operator]
    raise NotComputed


def _operation_value(node: ast.BinOp) -> object:
    left, right = value_in(node.left), value_in(node.right)
    if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(node.op, ast.Mod) and isinstance(left, str) and not WIDTH.search(left):
        return left % right
    raise NotComputed


def _joined_value(node: ast.JoinedStr) -> object:
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None or part.conversion not in (-1, 115):
                raise NotComputed
            parts.append(str(value_in(part.value)))
        else:
            parts.append(str(value_in(part)))
    return "".join(parts)


def _comparison_value(node: ast.Compare) -> object:
    if len(node.ops) != 1:
        raise NotComputed
    left, right = value_in(node.left), value_in(node.comparators[0])
    compare = COMPARED.get(type(node.ops[0]))
    if compare is None:
        raise NotComputed
    return compare(left, right)


def _item(holder: ast.expr, key: ast.expr) -> ast.expr | None:
    """Return an item of a dict, a list or a tuple; None if it is not known."""
    try:
        wanted = value_in(key)
        if isinstance(holder, ast.Dict):
            for each, value in zip(holder.keys, holder.values, strict=True):
                if each is not None and value_in(each) == wanted:
                    return value
        if isinstance(holder, ast.List | ast.Tuple) and isinstance(wanted, int):
            return holder.elts[wanted]
    except (NotComputed, IndexError):
        pass
    return None
