"""Finds the parsers that a script makes by argparse, and which command each argument belongs to."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from workers.code_reader.modules import Module, constant

ADD = "add_argument"
PARSER = "ArgumentParser"
GROUPS = ("add_argument_group", "add_mutually_exclusive_group")


@dataclass
class Parsers:
    """The parsers that the calls of a module make.

    Attributes:
        commands: for each variable, the lines from which it holds the parser of a command.
        choices: the declarations of commands: the call of `add_subparsers`, and the names of its commands.
        defaults: the sources given to `set_defaults`, by name.
        hidden_defaults: a call of `set_defaults` that may set any name; None without one.
        adders: the names that hold a parser's method `add_argument`.
        heirs: for each variable whose parser is a parent of others, the commands of these.
        owners: for each variable that holds a group of arguments, the variable of its parser.
    """

    commands: dict[str, list[tuple[int, str | None]]] = field(default_factory=dict)
    choices: list[tuple[ast.Call, list[str]]] = field(default_factory=list)
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    hidden_defaults: ast.Call | None = None
    adders: set[str] = field(default_factory=set)
    heirs: dict[str, list[str | None]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def adds(self, call: ast.Call) -> bool:
        """Return whether a call adds an argument to a parser."""
        return method_of(call) == ADD or (isinstance(call.func, ast.Name) and call.func.id in self.adders)

    def commands_of(self, call: ast.Call) -> list[str | None]:
        """Return the commands whose parsers have the argument that a call adds; None is the main parser."""
        holder = _holder(call)
        return self.heirs.get(self.owners.get(holder, holder)) or [self.command_at(call)]

    def command_at(self, call: ast.Call) -> str | None:
        """Return the command whose parser a call's variable holds; None for the main parser."""
        made = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(made, ast.Call) and isinstance(command := _command_made_by(made), str):
            return command
        held = [command for line, command in self.commands.get(_holder(call), ()) if line <= call.lineno]
        return held[-1] if held else None

    def hold(self, name: str, call: ast.Call, command: str | None) -> None:
        """Record that a variable holds the parser that a call makes."""
        self.commands.setdefault(name, []).append((call.lineno, command))
        for parent in _parents(call):
            self.heirs.setdefault(parent, []).append(command)

    def set_defaults(self, call: ast.Call) -> None:
        """Record the defaults that a call of `set_defaults` sets."""
        for name, value in _given(call):
            if name is None:
                self.hidden_defaults = call
            else:
                self.defaults[name] = value


def parsers_of(module: Module) -> Parsers:
    """Return the parsers of a module, from its assignments and calls in the order of their lines."""
    parsers = Parsers()
    groups: dict[str, list[str]] = {}
    nodes = list(ast.walk(module.tree))
    names = {id(node.value): _target(node) for node in nodes if isinstance(node, ast.Assign)}
    calls = sorted((node for node in nodes if isinstance(node, ast.Call)), key=lambda node: node.lineno)
    for call in calls:
        if method_of(call) == "add_subparsers":
            parsers.choices.append((call, groups.setdefault(names.get(id(call), ""), [])))
    for call in calls:
        method, holder, name = method_of(call), _holder(call), names.get(id(call), "")
        if isinstance(command := _command_made_by(call), str):
            # A function may have another name for the group.
            group = groups.get(holder, next(iter(groups.values()), []))
            group.append(command)
            parsers.hold(name, call, command)
        elif method in GROUPS:
            parsers.owners[name] = parsers.owners.get(holder, holder)
            parsers.hold(name, call, parsers.command_at(call))
        elif method == PARSER:
            parsers.hold(name, call, None)
        elif method == "set_defaults":
            parsers.set_defaults(call)
    _add_adders(parsers, nodes)
    return parsers


def method_of(call: ast.Call) -> str:
    """Return the name of the method or function that is called."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _add_adders(parsers: Parsers, nodes: Iterable[ast.AST]) -> None:
    """Record the names that hold a method `add_argument`, as in `add = parser.add_argument`."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == ADD:
            name, holder = _target(node), node.value.value
            parsers.adders.add(name)
            parsers.owners[name] = variable = holder.id if isinstance(holder, ast.Name) else ""
            held = parsers.commands.get(variable, ())
            commands = [command for line, command in held if line <= node.lineno]
            parsers.commands.setdefault(name, []).append((node.lineno, commands[-1] if commands else None))


def _command_made_by(call: ast.Call) -> object:
    """Return the name of the command whose parser a call makes; None for another call."""
    return constant(call.args[0]) if method_of(call) == "add_parser" and call.args else None


def _target(node: ast.Assign) -> str:
    """Return the one name to which a statement assigns; empty without."""
    target = node.targets[0] if len(node.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else ""


def _holder(call: ast.Call) -> str:
    """Return the variable whose method is called, or that holds it; empty for another expression."""
    holder = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return holder.id if isinstance(holder, ast.Name) else ""


def _parents(call: ast.Call) -> list[str]:
    """Return the variables of the parsers whose arguments a parser has too."""
    given = next((each.value for each in call.keywords if each.arg == "parents"), None)
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else []
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _given(call: ast.Call) -> list[tuple[str | None, ast.expr]]:
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
