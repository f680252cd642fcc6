"""Reads the arguments that a script declares by argparse, and how each is given to it."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from jobs.messages.code import ArgumentAction, CodeArgument, GivenAs, default_dest
from workers.code_reader.modules import Module, constant, list_of_names, printable
from workers.code_reader.script_arguments.argparse_parsers import PARSER, CommandChoice, Parsers
from workers.code_reader.script_arguments.argument_choices import choices_of, value_of
from workers.code_reader.script_arguments.argument_words import words_of
from workers.code_reader.script_arguments.loops.dataclass_fields import DataClasses
from workers.code_reader.script_arguments.loops.loop_items import LoopItems
from workers.code_reader.script_arguments.loops.loop_turns import LoopTurns
from workers.code_reader.script_arguments.parser_names import method_of

PARSE = ("parse_args", "parse_known_args")
ACTIONS: dict[str, ArgumentAction] = {
    "store_true": "true",
    "store_false": "false",
    "store_const": "constant",
    "append_const": "constant",
    "count": "count",
    "append": "append",
    "extend": "extend",
    "BooleanOptionalAction": "boolean",
}
NO_VALUE = {"true": "False", "false": "True"}
"""The default of an option without a value, by its action."""
NOT_GIVEN = ("help", "version")
"""Actions that print a text and end the script."""
NO_ARGUMENT = {"?": "None", "*": "[]"}
"""The default of an argument without a name that may be left out, by its number of values."""
NARGS = {
    "argparse.OPTIONAL": "?",
    "argparse.ZERO_OR_MORE": "*",
    "argparse.ONE_OR_MORE": "+",
    "argparse.REMAINDER": "...",
}
"""The numbers of values for which argparse has names."""
MOST_LINES = 5
COMMAND = "command"
"""The name of the choice between commands, if the script gives it none."""


@dataclass(frozen=True)
class Declared:
    """The arguments that a script declares.

    Attributes:
        arguments: those that are known.
        note: a sentence about others.
        given_as: how others are given.
        ignores_others: whether it passes over those that it does not declare.
    """

    arguments: list[CodeArgument]
    note: str = ""
    given_as: GivenAs = "--name value"
    ignores_others: bool = False


def declared_by_argparse(module: Module, modules: Iterable[Module]) -> Declared | None:
    """Return the arguments whose names are constants; None if the module declares none by argparse."""
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    parsers = Parsers(module)
    added = [call for call in calls if parsers.adds(call)]
    if not added and not parsers.choices:
        return None
    arguments = [_command(choice, owner, parsers) for choice in parsers.choices for owner in choice.owners]
    dynamic: list[int] = []
    turns = LoopTurns(module, parsers.names, LoopItems(module, parsers.names, DataClasses(module, modules)))
    for call in added:
        commands, filled = parsers.commands_of(call), turns.calls(call)
        several = [
            _argument(module, each, parsers, modules)
            for each in filled or ()
            if _action_name(module, each) not in NOT_GIVEN
        ]
        known = [each for each in several if each is not None]
        if filled is None or len(known) < len(several) or commands is None:
            dynamic.append(call.lineno)
        else:
            added_here = [each.model_copy(update={"command": name}) for each in known for name in commands]
            # A loop over commands adds each of them once.
            arguments += [each for n, each in enumerate(added_here) if each not in added_here[:n]]
    return _declared(calls, arguments, dynamic)


def _declared(calls: list[ast.Call], arguments: list[CodeArgument], dynamic: list[int]) -> Declared:
    notes = []
    if dynamic:
        lines = (
            f"line {dynamic[0]}"
            if len(dynamic) == 1
            else f"lines {', '.join(map(str, dynamic[:MOST_LINES]))}"
        )
        more = " and more" if len(dynamic) > MOST_LINES else ""
        notes.append(
            f"Only running the script shows the arguments of {lines}{more}: add them by hand in the form."
        )
    ignores_others = any(method_of(call) == "parse_known_args" for call in calls)
    if ignores_others:
        notes.append("It passes over arguments that it does not declare (parse_known_args).")
    parsers = [call for call in calls if method_of(call) == PARSER]
    # One without help is a parent of others.
    if sum(constant(_keywords(call).get("add_help")) is not False for call in parsers) > 1:
        notes.append("It has several parsers, whose arguments are listed together.")
        arguments = [
            each.model_copy(update={"default": "None"}) if each.default is None else each
            for each in arguments
        ]
    return Declared(arguments, " ".join(notes), ignores_others=ignores_others)


def _command(choice: CommandChoice, owner: str | None, parsers: Parsers) -> CodeArgument:
    """Return the choice between commands as an argument."""
    keywords = _keywords(choice.call)
    name = _name_of_choice(choice)
    above = {_name_of_choice(each) for each in parsers.choices if None in each.owners}
    if owner is not None and name in above:
        # A value is given by its name, which each level needs for itself.
        name = f"{name}_{owner.count(' ') + 2}"
    return CodeArgument(
        name=printable(name),
        default=None if constant(keywords.get("required")) is True else "None",
        choices=list_of_names(choice.names) if choice.is_whole else None,
        action="command",
        help=_text(keywords.get("help")),
        command=owner,
    )


def _name_of_choice(choice: CommandChoice) -> str:
    dest = constant(_keywords(choice.call).get("dest"))
    return dest if isinstance(dest, str) else COMMAND


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def _text(node: ast.expr | None) -> str | None:
    value = constant(node)
    return printable(value) if isinstance(value, str) else None


def _action_name(module: Module, call: ast.Call) -> str:
    """Return an action's name: as a text, or the last part of a class's."""
    action = _keywords(call).get("action")
    if isinstance(action, ast.Attribute | ast.Name):
        return module.full_name(action).rpartition(".")[2]
    value = constant(action)
    return value if isinstance(value, str) else ""


def _argument(
    module: Module, call: ast.Call, parsers: Parsers, modules: Iterable[Module]
) -> CodeArgument | None:
    names = [constant(argument) for argument in call.args]
    texts = [name for name in names if isinstance(name, str)]
    has_hidden_settings = any(keyword.arg is None for keyword in call.keywords)
    if not texts or len(texts) < len(names) or has_hidden_settings:
        return None
    # The long name of an option: `--epochs`, not `-e`.
    name = max(texts, key=len)
    is_option = name.startswith("-")
    keywords = _keywords(call)
    action = ACTIONS.get(_action_name(module, call), "store")
    dest = _dest(texts, keywords)
    nargs_node = value_of(module, keywords.get("nargs"))
    nargs = NARGS.get(module.full_name(nargs_node), constant(nargs_node)) if nargs_node is not None else None
    if nargs is None and not isinstance(nargs_node, ast.Constant | None):
        return None
    annotation = keywords.get("type")
    long_names = [text for text in texts if text.startswith("--")]
    default = module.source(parsers.defaults.get(dest, keywords.get("default")))
    const = default if action in ("append", "extend") else module.source(keywords.get("const"))
    if default is None and not is_option:
        default = NO_ARGUMENT.get(str(nargs))
    if default is None and is_option and constant(keywords.get("required")) is not True:
        default = NO_VALUE.get(action, "0" if action == "count" else "None")
    if default is not None and action in NO_VALUE and parsers.hidden_defaults is not None:
        default = module.source(parsers.hidden_defaults)
    return CodeArgument(
        name=printable(name),
        default=default,
        annotation=module.source(annotation),
        help=_text(keywords.get("help")),
        choices=choices_of(module, keywords.get("choices")),
        action=action,
        flags=[printable(text) for text in texts] if is_option else [],
        off=printable(f"--no-{long_names[0][2:]}") if action == "boolean" and long_names else None,
        dest=None if dest == default_dest(texts) else printable(dest),
        nargs=None if nargs is None else printable(str(nargs)),
        const=const,
        words=words_of(module, annotation, modules),
    )


def _dest(names: list[str], keywords: dict[str, ast.expr]) -> str:
    given = constant(keywords.get("dest"))
    return given if isinstance(given, str) else default_dest(names)
