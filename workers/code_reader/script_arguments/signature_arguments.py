"""Reads the arguments of functions that typer or fire calls with the arguments of a script."""

import ast

from jobs.messages.code import ArgumentAction, CodeArgument
from workers.code_reader.modules import Module, constant, list_of_names, printable
from workers.code_reader.script_arguments.argparse_arguments import Declared

LISTS = ("list", "List", "tuple", "Tuple", "Sequence", "set", "Set")
WORDS = ["True", "False"]


def declared_by_typer(module: Module) -> Declared | None:
    """Return the parameters of the functions that typer calls; None if there are none."""
    if not any(name.partition(".")[0] == "typer" for name in module.imported.values()):
        return None
    functions = [node for node in module.tree.body if isinstance(node, ast.FunctionDef)]
    run = _called_with(module, "typer.run")
    chosen = [node for node in functions if node.name in run or _is_command(node)]
    if not chosen:
        return None
    several = len(chosen) > 1
    arguments = [
        _of_typer(module, argument, default, _command_name(node) if several else None)
        for node in chosen
        for argument, default in _parameters(node)
    ]
    if several:
        names = list_of_names([_command_name(node) for node in chosen])
        arguments.insert(0, CodeArgument(name="command", choices=names, action="command"))
    return Declared(arguments)


def declared_by_fire(module: Module) -> Declared | None:
    """Return the parameters of the one function that fire calls; None if there is none."""
    names = _called_with(module, "fire.Fire")
    functions = [
        node for node in module.tree.body if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    if len(functions) != 1:
        return None
    arguments = [
        CodeArgument(
            name=printable(f"--{argument.arg}"),
            default=module.source(default),
            annotation=module.source(argument.annotation) or _kind(default),
            flags=[printable(f"--{argument.arg}")],
            # It reads each text as a literal of Python.
            words=WORDS,
            library="fire",
        )
        for argument, default in _parameters(functions[0])
    ]
    return Declared(arguments)


def _called_with(module: Module, name: str) -> set[str]:
    """Return the names that are the first argument in calls of a function with this full name."""
    return {
        node.args[0].id
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and module.full_name(node.func) == name
        if node.args and isinstance(node.args[0], ast.Name)
    }


def _is_command(node: ast.FunctionDef) -> bool:
    calls = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(call, ast.Attribute) and call.attr == "command" for call in calls)


def _command_name(node: ast.FunctionDef) -> str:
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and each.args and isinstance(name := constant(each.args[0]), str):
            return printable(name)
    return node.name.replace("_", "-")


def _parameters(node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    signature = node.args
    positional = [*signature.posonlyargs, *signature.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(signature.defaults))
    return [
        *zip(positional, [*missing, *signature.defaults], strict=True),
        *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
    ]


def _of_typer(
    module: Module, argument: ast.arg, default: ast.expr | None, command: str | None
) -> CodeArgument:
    annotation, about = argument.annotation, _about(module, default)
    if isinstance(annotation, ast.Subscript) and module.full_name(annotation.value).endswith("Annotated"):
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        annotation = parts[0]
        about = next((found for part in parts[1:] if (found := _about(module, part)) is not None), about)
    if about is not None and _about(module, default) is about:
        default = about.args[0] if about.args else None
        if isinstance(default, ast.Constant) and default.value is ...:
            default = None
    is_argument = about is not None and module.full_name(about.func) == "typer.Argument"
    is_option = not is_argument and (default is not None or about is not None)
    inner, is_list = _inner(module, annotation)
    names = [each for each in map(constant, about.args if about else ()) if isinstance(each, str)]
    pairs = [(on.strip(), off.strip()) for on, _, off in (name.partition("/") for name in names)]
    on = [name for name, _ in pairs if name.startswith("-")]
    off = next((name for _, name in pairs if name.startswith("--")), None)
    flag = argument.arg.replace("_", "-")
    flags = (on or [f"--{flag}"]) if is_option else []
    kind = module.source(inner) or _kind(default)
    count = _count(module, annotation)
    action: ArgumentAction = "append" if is_list and is_option and count is None else "store"
    if is_option and kind == "bool":
        action = "boolean" if (off and on) or not names else "true" if on else "false"
        flags = [off] if action == "false" and off else flags
    return CodeArgument(
        name=printable(max(flags, key=len) if flags else argument.arg),
        default=module.source(default),
        annotation=kind,
        action=action,
        flags=[printable(name) for name in flags],
        off=printable(off or f"--no-{flag}") if action == "boolean" else None,
        dest=printable(argument.arg) if flags and flag not in {name.lstrip("-") for name in flags} else None,
        nargs=count or ("+" if is_list and not is_option else None),
        words=WORDS if kind == "bool" and action == "store" else [],
        command=command,
        library="typer",
    )


def _about(module: Module, node: ast.expr | None) -> ast.Call | None:
    """Return a call of `typer.Option` or `typer.Argument`."""
    if isinstance(node, ast.Call) and module.full_name(node.func) in ("typer.Option", "typer.Argument"):
        return node
    return None


def _inner(module: Module, node: ast.expr | None) -> tuple[ast.expr | None, bool]:
    """Return the type of a value, without `Optional`, `| None` and lists; and whether there are several."""
    if isinstance(node, ast.BinOp):
        return _inner(module, node.left)
    if isinstance(node, ast.Subscript):
        name = module.full_name(node.value).rpartition(".")[2]
        inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if name == "Optional":
            return _inner(module, inner)
        if name in LISTS:
            return inner, True
    return node, False


def _count(module: Module, node: ast.expr | None) -> str | None:
    """Return how many values a tuple with a type for each has; None for another type."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return None
    is_tuple = module.full_name(node.value).rpartition(".")[2] in ("tuple", "Tuple")
    is_open = any(constant(part) is ... for part in node.slice.elts)
    return str(len(node.slice.elts)) if is_tuple and not is_open else None


def _kind(default: ast.expr | None) -> str | None:
    value = constant(default)
    return type(value).__name__ if isinstance(value, bool | int | float) else None
