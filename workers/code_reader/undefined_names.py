"""Finds names that functions and classes use, and that no line of their file defines."""

import ast
import builtins
import symtable
from collections.abc import Iterator, Set

from jobs.messages.code import CodeNotice
from workers.code_reader.builders import statements_of
from workers.code_reader.modules import Module, printable
from workers.code_reader.uses import Use, use_of

type Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
OF_EVERY_MODULE = frozenset(
    {
        *dir(builtins),
        "__builtins__", "__doc__", "__file__", "__loader__", "__name__", "__package__", "__path__",
        "__spec__",
    }
)  # fmt: skip
DEFINE_BY_TEXT = frozenset({"exec", "globals"})
"""Functions that define names which no parser sees."""
FUTURE = "from __future__ import annotations\n"
"""With it annotations are not executed, so the names in them are not needed."""


def undefined_names(module: Module, entries: Set[str]) -> Iterator[CodeNotice]:
    """Yield the first line of each name that is used and not defined: a call would end with a NameError.

    Args:
        module: the file.
        entries: its functions and classes that are used from outside. Without any, all of them are looked at.
    """
    uses = [(node, use_of(module, node)) for node in module.tree.body]
    defined = set(OF_EVERY_MODULE).union(*(use.binds for _, use in uses), _globals_of(module))
    if "*" in defined or any(use.calls & DEFINE_BY_TEXT for _, use in uses):
        return
    future = FUTURE if module.imported.get("annotations") == "__future__.annotations" else ""
    for node in _used(module, uses, entries):
        around = "if True:\n" if node.col_offset else ""
        lines = range(_first_line(node), (node.end_lineno or node.lineno) + 1)
        text = "".join([future, around, *(f"{module.line(number)}\n" for number in lines)])
        names = _names_of(text) - defined
        for line, name in sorted((_line_of(node, name), name) for name in names):
            defined.add(name)
            message = (
                f"no line of the file defines {name}, which {node.name} uses: define it, or write its value"
            )
            yield CodeNotice(path=module.path, line=line, message=printable(message))


def _used(module: Module, uses: list[tuple[ast.stmt, Use]], entries: Set[str]) -> Iterator[Definition]:
    """Yield the functions and classes that entries are or use, in the order of the file."""
    wanted = set(entries)
    while entries:
        more = {name for _, use in uses if use.binds & wanted for name in use.reads}
        if more <= wanted:
            break
        wanted |= more
    for node in statements_of(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            not entries or node.name in wanted
        ):
            yield node


def _globals_of(module: Module) -> set[str]:
    """Return the names that functions define in the module by the statement `global`."""
    nodes = ast.walk(module.tree)
    return {name for node in nodes if isinstance(node, ast.Global) for name in node.names}


def _names_of(text: str) -> set[str]:
    """Return the names of the module that a definition uses, also once it is called."""
    try:
        tables = [symtable.symtable(text, "", "exec")]
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return set()
    is_outside, names = True, set()
    while tables:
        table = tables.pop()
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (is_outside or symbol.is_global())
        }
        is_outside = False
        tables += table.get_children()
    return names


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _line_of(node: Definition, name: str) -> int:
    """Return the first line on which a definition uses a name."""
    lines = (part.lineno for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name)
    return min(lines, default=node.lineno)
