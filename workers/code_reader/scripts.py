"""Finds scripts, and the arguments that they declare."""

import ast
from collections.abc import Iterable, Iterator, Mapping

from jobs.messages.code import CodeEntry
from workers.code_reader.assignments import executed_files, given_as_in
from workers.code_reader.files import SourceFile
from workers.code_reader.modules import Module, Unreadable, constant
from workers.code_reader.script_arguments.argparse_arguments import PARSE, Declared, declared_by_argparse
from workers.code_reader.script_arguments.argument_libraries import declared_by_library, library_of
from workers.code_reader.script_arguments.argument_places import declared_by_places, reads_places
from workers.code_reader.script_arguments.transformers_arguments import declared_by_transformers

MOST_IMPORTED = 20
"""Modules of the version that are searched for the arguments of a script that declares none itself."""


def script_of(module: Module, modules: Mapping[str, Module]) -> CodeEntry | None:
    """Return a module as a script; None if it does nothing when it is started.

    It has `if __name__ == "__main__":`, or reads its arguments outside functions.

    Args:
        module: the file.
        modules: all of the version by their paths, since a script may import its parser.
    """
    start = next((node for node in module.tree.body if is_start(node) or reads_arguments(module, node)), None)
    if start is None:
        return None
    declared = _declared(module, modules)
    return CodeEntry(
        kind="script",
        name=module.path,
        path=module.path,
        line=start.lineno,
        arguments=declared.arguments,
        note=declared.note,
        given_as=declared.given_as,
        ignores_others=declared.ignores_others,
    )


def declared_by_script(texts: Mapping[str, str], path: str) -> Declared:
    """Return the arguments that a script declares; none if it cannot be parsed.

    Args:
        texts: the Python files of the version, by their paths.
        path: the script's.
    """
    modules: dict[str, Module] = {}
    for name, text in texts.items():
        try:
            modules[name] = Module.parse(SourceFile(name, b"", text))
        except Unreadable:
            continue
    try:
        return _declared(modules[path], modules) if path in modules else Declared([])
    except (RecursionError, MemoryError):
        return Declared([])


def is_start(node: ast.stmt) -> bool:
    """Return whether a statement is `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    if not isinstance(node.test.ops[0], ast.Eq):
        return False
    sides = [node.test.left, *node.test.comparators]
    has_name = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return has_name and any(constant(side) == "__main__" for side in sides)


def reads_arguments(module: Module, node: ast.stmt) -> bool:
    """Return whether a module's statement reads the script's arguments when the module is imported."""
    # The content of a function or a class is not executed then.
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
        return False
    return reads_places(module, node) or any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in PARSE
        for part in ast.walk(node)
    )


def _declared(module: Module, modules: Mapping[str, Module]) -> Declared:
    """Return a script's arguments: its own, else those of the first imported module that has some."""
    library = ""
    parts = list(_with_imported(module, modules))
    for each in parts:
        declared = (
            declared_by_argparse(each, modules.values())
            or declared_by_transformers(each, modules.values())
            or declared_by_library(each)
        )
        if declared is not None:
            return declared
        library = library or library_of(each)
    given_as = next((form for each in parts if (form := given_as_in(each)) is not None), None)
    if library:
        reads = f"are read by {library}, whose declarations are not read"
    elif given_as is not None:
        reads = f"are given as {given_as}, and it does not declare them"
    else:
        return declared_by_places(module) or Declared([])
    note = f"Its arguments {reads}: add them in the form."
    return Declared([], note, given_as if given_as is not None else "--name value")


def _with_imported(module: Module, modules: Mapping[str, Module]) -> Iterator[Module]:
    """Yield a module, and then those of the version that it imports, directly or through another one."""
    waiting, seen = [module], {module.path}
    while waiting and len(seen) <= MOST_IMPORTED:
        yield (here := waiting.pop(0))
        for other in _imported(here, modules.values()):
            if other.path not in seen:
                seen.add(other.path)
                waiting.append(other)


def _imported(module: Module, modules: Iterable[Module]) -> list[Module]:
    folder = module.path.rpartition("/")[0].replace("/", ".")
    names = {name for full in module.imported.values() for name in (full, full.rpartition(".")[0]) if name}
    names |= {f"{folder}.{name}" for name in names if folder}
    paths = set(executed_files(module, folder))
    return [
        other
        for other in modules
        if other.path != module.path and (other.dotted in names or other.path in paths)
    ]
