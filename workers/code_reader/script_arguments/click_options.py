"""Reads the options and arguments of commands of click."""

import ast

from jobs.messages.code import ArgumentAction, CodeArgument
from workers.code_reader.modules import Module, constant, list_of_names, printable
from workers.code_reader.script_arguments.argparse_arguments import Declared
from workers.code_reader.script_arguments.argument_choices import choices_of

CLICK = "click"
WORDS = ["true", "false"]
OF_CLICK = {"INT": "int", "FLOAT": "float", "STRING": "str", "BOOL": "bool"}


def declared_by_click(module: Module) -> Declared | None:
    """Return the arguments of the functions decorated by click; None if there is none."""
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)]
    commands = [(node, command) for node in functions if (command := _command_of(module, node)) is not None]
    if not commands:
        return None
    has_group = any(_kind(module, node) == "group" for node in functions)
    arguments = [
        argument
        for node, command in commands
        # A decorator is applied after those below it, so the lowest argument is the last one.
        for decorator in node.decorator_list
        if (argument := _argument(module, decorator, command if has_group else None)) is not None
    ]
    names = [command for node, command in commands if _kind(module, node) == "command"]
    if has_group and names:
        arguments.insert(0, CodeArgument(name="command", choices=list_of_names(names), action="command"))
    return Declared(arguments)


def _kind(module: Module, node: ast.FunctionDef) -> str:
    """Return `command` or `group` for a function that click makes one; else empty."""
    for decorator in node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        last = module.full_name(call).rpartition(".")[2]
        # `@cli.command()` of a group has the name of a variable.
        if last in ("command", "group") and any(map(_is_click, module.imported.values())):
            return last
    return ""


def _is_click(name: str) -> bool:
    return name == CLICK or name.startswith(f"{CLICK}.")


def _command_of(module: Module, node: ast.FunctionDef) -> str | None:
    """Return a command's name, empty for a group; None if click does not call the function."""
    kind = _kind(module, node)
    if kind != "command":
        return "" if kind else None
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and module.full_name(decorator.func).rpartition(".")[2] == kind:
            names = [constant(each) for each in decorator.args[:1]]
            names += [constant(each.value) for each in decorator.keywords if each.arg == "name"]
            if names and isinstance(names[0], str):
                return printable(names[0])
    return node.name.replace("_", "-")


def _argument(module: Module, decorator: ast.expr, command: str | None) -> CodeArgument | None:
    if not isinstance(decorator, ast.Call):
        return None
    kind = module.full_name(decorator.func)
    names = [each for each in map(constant, decorator.args) if isinstance(each, str)]
    if kind not in ("click.option", "click.argument") or not names:
        return None
    keywords = {each.arg: each.value for each in decorator.keywords if each.arg is not None}
    described = constant(keywords.get("help"))
    flags = [name for name in names if name.startswith("-")]
    given = next((name for name in names if not name.startswith("-")), None)
    flags, off = _split([flag.strip() for flag in flags])
    default, annotation = keywords.get("default"), _annotation(module, keywords)
    action = _action(keywords, off)
    is_boolean = annotation == "bool" or isinstance(constant(default), bool)
    is_required = constant(keywords.get("required")) is True if flags else _is_required(keywords)
    return CodeArgument(
        name=printable(max(flags, key=len) if flags else names[0]),
        default=None if is_required else module.source(default) or ("False" if action == "true" else "None"),
        annotation=annotation,
        help=printable(described) if isinstance(described, str) else None,
        choices=_choices(module, keywords.get("type")),
        any_case=_ignores_case(keywords.get("type")),
        action=action,
        flags=[printable(flag) for flag in flags],
        off=off,
        dest=printable(given) if flags and given else None,
        nargs=_nargs(keywords),
        const=module.source(keywords.get("flag_value")),
        words=WORDS if is_boolean and action == "store" else [],
        command=command or None,
        library="click",
    )


def _split(flags: list[str]) -> tuple[list[str], str | None]:
    """Return the names of an option, and the one after a slash, which makes it false."""
    on, off = [], None
    for flag in flags:
        first, _, second = flag.partition("/")
        if first.strip():
            on.append(first.strip())
        off = printable(second.strip()) if second.strip().startswith("--") else off
    return on, off


def _action(keywords: dict[str, ast.expr], off: str | None) -> ArgumentAction:
    if off:
        return "boolean"
    if "flag_value" in keywords:
        return "constant"
    if constant(keywords.get("is_flag")) is True:
        return "true"
    if constant(keywords.get("count")) is True:
        return "count"
    return "append" if constant(keywords.get("multiple")) is True else "store"


def _annotation(module: Module, keywords: dict[str, ast.expr]) -> str | None:
    """Return the type as it is written, else that of the default."""
    if (node := keywords.get("type")) is not None:
        last = module.full_name(node).rpartition(".")[2]
        return OF_CLICK.get(last) or module.source(node)
    value = constant(keywords.get("default"))
    return type(value).__name__ if isinstance(value, bool | int | float) else None


def _choices(module: Module, node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Call) and module.full_name(node.func) == "click.Choice" and node.args:
        return choices_of(module, node.args[0])
    return None


def _ignores_case(node: ast.expr | None) -> bool:
    """Return whether the choices of an option may be given in large or small letters."""
    given = node.keywords if isinstance(node, ast.Call) else []
    return any(each.arg == "case_sensitive" and constant(each.value) is False for each in given)


def _is_required(keywords: dict[str, ast.expr]) -> bool:
    """Return whether an argument without dashes must be given: unless it has a default, or any number."""
    if (required := constant(keywords.get("required"))) is not None:
        return required is True
    return "default" not in keywords and _nargs(keywords) != "*"


def _nargs(keywords: dict[str, ast.expr]) -> str | None:
    """Return how many values an argument takes: as many as `nargs` gives, or as its type has parts."""
    kind, node = keywords.get("type"), keywords.get("nargs")
    if node is None and isinstance(kind, ast.Tuple):
        return str(len(kind.elts))
    is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    value = constant(node)
    return "*" if is_negative else str(value) if isinstance(value, int) and value != 1 else None
