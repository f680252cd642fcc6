"""Finds the parsers that a script makes by argparse, and which commands each argument belongs to.

A command of a command has both names, as in `data clean`.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from workers.code_reader.modules import Module, constant
from workers.code_reader.script_arguments.parser_names import Names, given_to, method_of

ADD = "add_argument"
ADD_PARSER = "add_parser"
ADD_COMMANDS = "add_subparsers"
PARSER = "ArgumentParser"
GROUPS = ("add_argument_group", "add_mutually_exclusive_group")
MOST_STEPS = 100
"""Names between an argument and the call that makes its parser. Python allows no endless depth of calls."""

type Commands = list[str | None]
"""The commands of a parser; None is the script itself."""


@dataclass
class CommandChoice:
    """A choice between commands.

    Attributes:
        call: that of `add_subparsers`.
        owners: the commands that have the choice.
        names: those of its commands.
        is_whole: whether all names are known.
    """

    call: ast.Call
    owners: Commands
    names: list[str] = field(default_factory=list)
    is_whole: bool = True


class Parsers:
    """The parsers that the calls of a module make.

    Attributes:
        names: the meanings of names in the module.
        choices: the choices between commands.
        defaults: the sources given to `set_defaults`, by name.
        hidden_defaults: a call of `set_defaults` that may set any name; None without one.
    """

    def __init__(self, module: Module) -> None:
        self.names = Names(module)
        self._heirs: dict[str, Commands] = {}
        self._visited: dict[tuple[ast.expr, int], Commands | None] = {}
        self._meanings_of: dict[tuple[ast.expr, int], list[ast.expr]] = {}
        self.choices: list[CommandChoice] = []
        self.defaults: dict[str, ast.expr] = {}
        self.hidden_defaults: ast.Call | None = None
        for call in self.names.calls:
            if method_of(call) == ADD_COMMANDS:
                owners = self._commands(_holder(call), call.lineno)
                self.choices.append(CommandChoice(call, [None] if owners is None else owners))
        for call in self.names.calls:
            self._read(call)
        for choice in self.choices:
            choice.names = list(dict.fromkeys(choice.names))

    def adds(self, call: ast.Call) -> bool:
        """Return whether a call adds an argument to a parser."""
        return method_of(call) == ADD or self._adder(call) is not None

    def commands_of(self, call: ast.Call) -> Commands | None:
        """Return the commands that have the argument which a call adds; None if they are not known."""
        adder = self._adder(call)
        holder = _holder(call) if adder is None else adder.value
        commands = self._commands(holder, call.lineno)
        return None if commands is None else list(dict.fromkeys(commands))

    def _read(self, call: ast.Call) -> None:
        method = method_of(call)
        if method == ADD_PARSER and (choice := self._choice(_holder(call), call.lineno)) is not None:
            names = self.names.texts(call.args[0], call.lineno) if call.args else None
            choice.names += names or []
            choice.is_whole = choice.is_whole and names is not None
        if method in (ADD_PARSER, PARSER):
            for parent in _parents(call):
                commands = self._commands(call, call.lineno)
                for key in self.names.keys_of(parent):
                    self._heirs.setdefault(key, []).extend(commands or [])
        elif method == "set_defaults":
            for name, value in given_to(call):
                if name is None:
                    self.hidden_defaults = call
                else:
                    self.defaults[name] = value

    def _adder(self, call: ast.Call) -> ast.Attribute | None:
        """Return the method that a name holds, as in `add = parser.add_argument`."""
        value = self.names.bound(call.func, call.lineno) if isinstance(call.func, ast.Name) else None
        return value if isinstance(value, ast.Attribute) and value.attr == ADD else None

    def _commands(self, node: ast.expr, line: int) -> Commands | None:
        """Return the commands whose parsers an expression may be; None if they are not known."""
        self._visited = {}
        commands = self._visit(node, line, 0)
        # A function that only calls itself gives no parser.
        return [None] if commands == [] else commands

    def _visit(self, node: ast.expr, line: int, steps: int) -> Commands | None:
        """Return `_commands` without those of expressions that are being visited, which come with these."""
        if steps > MOST_STEPS:
            return [None]
        place = (node, line)
        if place not in self._visited:
            # Functions may give their parser to each other, and to themselves, in many calls.
            self._visited[place] = []
            self._visited[place] = self._found(node, line, steps)
        return self._visited[place]

    def _found(self, node: ast.expr, line: int, steps: int) -> Commands | None:
        if isinstance(node, ast.Constant):
            return None
        if isinstance(node, ast.Call):
            return self._made(node, line, steps)
        if (heirs := self._heirs.get(ast.unparse(node))) is not None:
            return heirs
        several = [self._visit(each, each.lineno, steps + 1) for each in self._meanings(node, line)]
        if not several:
            return [None]
        if None in several:
            return None
        found = list(dict.fromkeys(name for commands in several for name in commands or ()))
        key = constant(node.slice) if isinstance(node, ast.Subscript) else None
        # Of parsers that a loop puts into a dict by their names, one is meant.
        return [name for name in found if name and name.rpartition(" ")[2] == key] or found

    def _made(self, call: ast.Call, line: int, steps: int) -> Commands | None:
        """Return the commands whose parser a call makes."""
        method = method_of(call)
        if method in GROUPS:
            return self._visit(_holder(call), line, steps + 1)
        if method == ADD_PARSER:
            choice = self._choice(_holder(call), call.lineno)
            names = self.names.texts(call.args[0], call.lineno) if call.args else None
            if names is None:
                return None
            owners = choice.owners if choice is not None else [None]
            return [f"{owner} {name}" if owner else name for owner in owners for name in names]
        several = [
            commands
            for key in self.names.keys_of(call)
            for each in self.names.values_of(key)
            if (commands := self._visit(each, each.lineno, steps + 1)) is not None
        ]
        if not several:
            return [None]
        return list(dict.fromkeys(name for commands in several for name in commands))

    def _choice(self, node: ast.expr, line: int) -> CommandChoice | None:
        """Return the choice between commands that an expression is."""
        by_call: dict[ast.expr, CommandChoice] = {choice.call: choice for choice in self.choices}
        waiting, visited = [(node, line)], set[tuple[ast.expr, int]]()
        while waiting:
            place = waiting.pop()
            if (choice := by_call.get(place[0])) is not None:
                return choice
            if place not in visited:
                visited.add(place)
                meanings = self._meanings(*place)
                waiting += [(each, each.lineno) for each in reversed(meanings)]
        # Another part of the code may have made it.
        return self.choices[0] if self.choices else None

    def _meanings(self, node: ast.expr, line: int) -> list[ast.expr]:
        place = (node, line)
        if place not in self._meanings_of:
            self._meanings_of[place] = self.names.meanings(node, line)
        return self._meanings_of[place]


def _holder(call: ast.Call) -> ast.expr:
    """Return the object whose method is called."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def _parents(call: ast.Call) -> Sequence[ast.expr]:
    """Return the parsers whose arguments a parser has too."""
    given = next((each.value for each in call.keywords if each.arg == "parents"), None)
    return given.elts if isinstance(given, ast.List | ast.Tuple) else []
