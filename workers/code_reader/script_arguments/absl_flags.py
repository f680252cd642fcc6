"""Reads the flags that a script defines by absl."""

import ast

from jobs.messages.code import ArgumentAction, CodeArgument
from workers.code_reader.modules import Module, constant, printable
from workers.code_reader.script_arguments.argparse_arguments import Declared
from workers.code_reader.script_arguments.argument_choices import choices_of

DEFINE = "DEFINE_"
KINDS = {"integer": "int", "float": "float", "string": "str"}
SEPARATORS = {"list": ",", "spaceseplist": " "}
REQUIRED = "mark_flag_as_required"


def declared_by_absl(module: Module) -> Declared | None:
    """Return the flags with constant names; None if there are none."""
    if not any(name == "absl" or name.startswith("absl.") for name in module.imported.values()):
        return None
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    required = {constant(call.args[0]) for call in calls if _name(module, call) == REQUIRED and call.args}
    flags = [
        _flag(module, call, kind.removeprefix(DEFINE), required)
        for call in calls
        if (kind := _name(module, call)).startswith(DEFINE)
    ]
    arguments = [flag for flag in flags if flag is not None]
    return Declared(arguments) if arguments else None


def _name(module: Module, call: ast.Call) -> str:
    return module.full_name(call.func).rpartition(".")[2]


def _flag(module: Module, call: ast.Call, kind: str, required: set[object]) -> CodeArgument | None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    name = constant(call.args[0] if call.args else keywords.get("name"))
    if not isinstance(name, str):
        return None
    default = call.args[1] if len(call.args) > 1 else keywords.get("default")
    at = 3 if kind in ("enum", "multi_enum") else 2
    described = constant(call.args[at] if len(call.args) > at else keywords.get("help"))
    choices = call.args[2] if at == 3 and len(call.args) > 2 else keywords.get("enum_values")
    is_boolean = kind in ("bool", "boolean")
    action: ArgumentAction = "boolean" if is_boolean else "append" if kind.startswith("multi") else "store"
    return CodeArgument(
        name=printable(f"--{name}"),
        default=None if name in required else module.source(default) or "None",
        annotation="bool" if is_boolean else KINDS.get(kind.removeprefix("multi_")),
        help=printable(described) if isinstance(described, str) else None,
        choices=choices_of(module, choices),
        any_case=kind in ("enum", "multi_enum") and constant(keywords.get("case_sensitive")) is False,
        action=action,
        flags=[printable(f"--{name}")],
        off=printable(f"--no{name}") if is_boolean else None,
        separator=SEPARATORS.get(kind),
        library="absl",
    )
