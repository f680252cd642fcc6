"""Reads a script's declarations, and makes the command that starts it."""

from collections import OrderedDict
from pathlib import Path

from jobs.messages.script_command import command_of, path_of
from jobs.messages.script_doubts import doubts_of
from jobs.messages.script_values import ArgumentRefused
from jobs.messages.task import OwnCode
from jobs.spec.sections.script_model import ScriptModel
from workers.code_reader.script_arguments.argparse_arguments import Declared
from workers.code_reader.scripts import declared_by_script
from workers.engine.errors import ProgramFailed

CACHED = 8
"""Scripts whose declarations are kept for the next trials."""

_declared: OrderedDict[tuple[str, str], Declared] = OrderedDict()


def script_command(script: ScriptModel, code: OwnCode) -> tuple[str, ...]:
    """Return the interpreter's arguments that start a script.

    Raises:
        ProgramFailed: the script would not get an argument as the experiment records it.
    """
    try:
        declared = _declared_by(script, code)
        return tuple(
            command_of(script, declared.arguments, is_whole=not declared.note, given_as=declared.given_as)
        )
    except ArgumentRefused as error:
        message = f"{script.entry} was not started, since it cannot get the argument {error}"
        raise ProgramFailed("script_arguments", message) from error


def argument_doubts(script: ScriptModel, code: OwnCode) -> list[str]:
    """Return sentences about arguments whose effect is not known."""
    declared = _declared_by(script, code)
    return [
        doubt
        for name, value in script.args.items()
        for doubt in doubts_of(
            name,
            [value],
            declared.arguments,
            ignores_others=declared.ignores_others,
            given_as=declared.given_as,
        )
    ]


def _declared_by(script: ScriptModel, code: OwnCode) -> Declared:
    key = (code.digest, script.entry)
    if key not in _declared:
        _declared[key] = _read(script.entry, code)
        while len(_declared) > CACHED:
            _declared.popitem(last=False)
    return _declared[key]


def _read(entry: str, code: OwnCode) -> Declared:
    texts = {
        file.path: Path(file.place).read_text("utf-8-sig", "replace")
        for file in code.files
        if file.path.endswith(".py")
    }
    return declared_by_script(texts, path_of(entry))
