"""Describes functions: their arguments, whether they can be called, and how Keras saves them."""

import ast

from jobs.messages.code import MAX_TEXT, CodeArgument, CodeEntry, EntryKind
from workers.code_reader.builders import Callable, Function
from workers.code_reader.modules import Module, constant, printable

FUNCTIONS: dict[str, tuple[EntryKind, str]] = {
    "build_model": ("build_model", "hp"),
    "load_data": ("load_data", "split"),
    "preprocess": ("preprocess", "…"),
}
"""By the name of a function: its kind, and its one argument."""
MAY_HAVE_NONE = frozenset({"load_data"})
"""Functions that may have no argument: such a `load_data` returns all parts, as those of Keras do."""
REGISTER = "register_keras_serializable"
DEFAULT_PACKAGE = "Custom"


def function_entry(module: Module, node: Function) -> CodeEntry | None:
    """Return a function that is known by its name, or that Keras can save; None for others."""
    registered = registered_name(module, node)
    if node.name in FUNCTIONS:
        kind, argument = FUNCTIONS[node.name]
        note = why_not_callable(node, argument)
    elif registered is not None:
        kind, note = "object", ""
    else:
        return None
    return CodeEntry(
        kind=kind,
        name=node.name[:MAX_TEXT],
        path=module.path,
        line=node.lineno,
        arguments=arguments_of(module, node),
        registered=registered,
        note=note,
    )


def is_classmethod(module: Module, method: Function) -> bool:
    """Return whether a method belongs to its class, not to an instance."""
    return any(module.full_name(decorator) == "classmethod" for decorator in method.decorator_list)


def why_not_callable(node: Callable, argument: str, *, name: str = "", given: int = 0) -> str:
    """Return why a function cannot be called with one argument; empty if it can.

    Args:
        node: the function.
        argument: the argument's name, for the message.
        name: the function's, if it has another one.
        given: how many arguments have a value already.
    """
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None for default in arguments.kw_defaults if default is None]
    required = len(positional) - len(arguments.defaults) + len(missing) - given
    name = name or getattr(node, "name", "")
    if isinstance(node, ast.AsyncFunctionDef):
        return "It is async; an ordinary function is needed."
    has_none = not positional and arguments.vararg is None and name not in MAY_HAVE_NONE
    if has_none or required > 1 or (missing and not given):
        return f"It must be callable with one argument: {name}({argument})."
    return ""


def arguments_of(module: Module, node: Callable) -> list[CodeArgument]:
    """Return a function's arguments, with defaults and annotations as they are written."""
    signature = node.args
    positional = [*signature.posonlyargs, *signature.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(signature.defaults))
    pairs = [
        *zip(positional, [*defaults, *signature.defaults], strict=True),
        *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
    ]
    arguments = [_argument(module, argument, default) for argument, default in pairs]
    for stars, more in (("*", signature.vararg), ("**", signature.kwarg)):
        if more is not None:
            arguments.append(_argument(module, more, None, stars))
    return arguments


def _argument(module: Module, node: ast.arg, default: ast.expr | None, stars: str = "") -> CodeArgument:
    return CodeArgument(
        name=f"{stars}{node.arg}"[:MAX_TEXT],
        default=module.source(default),
        annotation=module.source(node.annotation),
    )


def registered_name(module: Module, node: Function | ast.ClassDef) -> str | None:
    """Return the name under which Keras saves an object that is decorated so."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = module.full_name(call.func if call else decorator)
        if name.rpartition(".")[2] != REGISTER:
            continue
        keywords = {} if call is None else {keyword.arg: keyword.value for keyword in call.keywords}
        positional = [] if call is None else call.args
        package = constant(positional[0] if positional else keywords.get("package"))
        given_name = constant(positional[1] if len(positional) > 1 else keywords.get("name"))
        home = package if isinstance(package, str) else DEFAULT_PACKAGE
        return printable(f"{home}>{given_name if isinstance(given_name, str) else node.name}")
    return None
