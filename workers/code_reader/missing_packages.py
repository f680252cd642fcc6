"""Finds definitions that need a package which is not installed, and that no entry reaches.

The import of the package would end each job, although nothing that the job calls needs it.
"""

import ast
import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from jobs.messages.code import CodeEntry
from workers.code_reader.modules import Module
from workers.code_reader.tensorflow_imports import TENSORFLOW, is_replaced, uses_more_than_keras
from workers.code_reader.uses import Use, holders

BUILDERS = ("build_model", "hypermodel", "load_data", "preprocess")
"""Entries that a job calls. Layers and metrics are used by them, or not at all."""
IMPORT = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Surroundings:
    """The parts of a version that decide which definitions of a module are needed.

    Attributes:
        called: the names of the module that entries use; None if all of it is needed.
        words: all names that the module itself may use of another one.
        modules: how many modules have each name among their words.
        own: the names of the version's own modules and folders.
    """

    called: frozenset[str] | None = None
    words: frozenset[str] = frozenset()
    modules: Mapping[str, int] = field(default_factory=dict)
    own: frozenset[str] = frozenset()

    @property
    def are_known(self) -> bool:
        """Return whether an entry, or another module, uses anything at all."""
        has_others = len(self.modules) > len(self.words) or any(self.modules[word] > 1 for word in self.words)
        return bool(self.called) or has_others

    def used_of(self, names: Set[str]) -> set[str]:
        """Return those of the module's names that entries or other modules use."""
        called = self.called or frozenset()
        return {name for name in names if name in called or self.modules.get(name, 0) > (name in self.words)}


def surroundings_of(
    modules: Sequence[Module], entries: Sequence[CodeEntry], *, brings_packages: bool
) -> dict[str, Surroundings]:
    """Return the surroundings of all modules of a version, by their paths.

    Each is walked once, as a version may have thousands, and none if all of their packages are installed.

    Args:
        modules: all of the version.
        entries: those of the version.
        brings_packages: whether the version lists packages, which are installed for it.
    """
    surroundings = {module.path: Surroundings() for module in modules}
    own = frozenset(part for each in modules for part in each.dotted.split("."))
    lacking = [] if brings_packages else [each for each in modules if _missing(each.tree.body, own)]
    if not lacking:
        return surroundings
    words = {module.path: frozenset(_words_of(module)) for module in modules}
    counted = Counter(chain.from_iterable(words.values()))
    by_path: dict[str, list[CodeEntry]] = {}
    for entry in entries:
        by_path.setdefault(entry.path, []).append(entry)
    for module in lacking:
        found = by_path.get(module.path, [])
        if not any(entry.kind == "script" for entry in found):
            called = _called(found)
            surroundings[module.path] = Surroundings(called, words[module.path], counted, own)
    return surroundings


def _called(entries: Sequence[CodeEntry]) -> frozenset[str]:
    """Return the names of a module's entries that a job calls; of all entries if it calls none."""
    called = [entry for entry in entries if entry.kind in BUILDERS]
    return frozenset(entry.name.partition(".")[0] for entry in called or entries)


def _words_of(module: Module) -> set[str]:
    """Return all names that a module may use of another one."""
    words: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.alias):
            words.add(node.name.rpartition(".")[2])
    return words


def unreached(
    statements: Sequence[ast.stmt], uses: Mapping[int, Use], surroundings: Surroundings, used: Set[str]
) -> dict[int, str]:
    """Return the package that each statement lacks, by the statement's id, if no entry reaches it.

    Args:
        statements: those of a module.
        uses: the names that each uses, by the statement's id.
        surroundings: of the module.
        used: further names of it that are needed.
    """
    packages = _missing(statements, surroundings.own)
    # Without anything that is used, the purpose of the file is unknown.
    if surroundings.called is None or not (surroundings.are_known or used) or not packages:
        return {}
    names = {name for node in statements for name in uses[id(node)].binds | holders(node)}
    needs = {id(node): _needs(node, uses[id(node)], packages) for node in statements}
    reached = _reached(statements, uses, surroundings.used_of(names) | used)
    essential = {name for node in reached for name in needs[id(node)]}
    lacking = dict.fromkeys(map(id, reached), "")
    bound: dict[str, str] = {name: package for name, package in packages.items() if name not in essential}
    while True:
        more = {
            id(node): bound[min(names)]
            for node in statements
            if id(node) not in lacking and not isinstance(node, IMPORT)
            if (names := (uses[id(node)].reads - packages.keys() | needs[id(node)]) & bound.keys())
        }
        if not more:
            break
        lacking |= more
        bound |= {
            name: more[id(node)] for node in statements if id(node) in more for name in uses[id(node)].binds
        }
    left_out = {node: package for node, package in lacking.items() if package}
    kept = [node for node in statements if id(node) not in left_out and not isinstance(node, IMPORT)]
    read = {name for node in kept for name in uses[id(node)].reads}
    for node in statements:
        names = uses[id(node)].binds
        if isinstance(node, IMPORT) and names and names <= packages.keys() - read:
            left_out[id(node)] = packages[min(names)]
    return left_out


def _missing(statements: Sequence[ast.stmt], own: Set[str]) -> dict[str, str]:
    """Return the packages that are not installed, by the name that an import binds."""
    packages: dict[str, str] = {}
    for node in statements:
        if isinstance(node, ast.Import) and not is_replaced(node):
            names = [(alias.asname or alias.name.partition(".")[0], alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and not is_replaced(node):
            names = [(alias.asname or alias.name, node.module or "") for alias in node.names]
        else:
            continue
        for name, full in names:
            if full.partition(".")[0] not in own and (package := _lacking(full)):
                packages[name] = package
    return packages


@cache
def _lacking(name: str) -> str:
    """Return the part of a module's full name that is not installed; empty if it is."""
    first, _, rest = name.partition(".")
    try:
        spec = importlib.util.find_spec(first)
        # Several packages share such a name, as in `google.colab`; it has no code of its own.
        is_shared = spec is not None and spec.origin is None and spec.submodule_search_locations is not None
        if is_shared and rest:
            inner = f"{first}.{rest.partition('.')[0]}"
            return "" if importlib.util.find_spec(inner) is not None else inner
        return "" if spec is not None else first
    except (ImportError, ValueError):
        # Such as `__main__`, which has no spec.
        return ""


def _needs(node: ast.stmt, use: Use, packages: Mapping[str, str]) -> set[str]:
    """Return the names of missing packages that a statement needs, also once imports are replaced."""
    return {
        name
        for name in use.reads & packages.keys()
        if packages[name] != TENSORFLOW or uses_more_than_keras(node, name)
    }


def _reached(statements: Sequence[ast.stmt], uses: Mapping[int, Use], used: Set[str]) -> list[ast.stmt]:
    """Return the statements that names depend on."""
    names = set(used)
    while True:
        reached = [node for node in statements if (uses[id(node)].binds | holders(node)) & names]
        more = {name for node in reached for name in uses[id(node)].reads}
        if more <= names:
            return reached
        names |= more
