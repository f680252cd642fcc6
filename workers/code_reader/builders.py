"""Finds the functions that build models: those that take hyperparameters, whatever their names."""

import ast
from collections.abc import Iterator

from workers.code_reader.modules import Module
from workers.code_reader.scripts import is_start

type Function = ast.FunctionDef | ast.AsyncFunctionDef
type Callable = Function | ast.Lambda

HYPERPARAMETERS = "hp"
CLASS = "HyperParameters"
METHODS = frozenset({"Int", "Float", "Choice", "Boolean", "Fixed", "conditional_scope"})
PARTIAL = "functools.partial"
LOOKED_FOR = (
    "a function that takes hp, or calls Int, Float, Choice, Boolean, Fixed or conditional_scope of its first "
    "argument; a HyperModel class; a function load_data or preprocess; a layer, metric, loss or model of "
    "Keras; a script"
)


def statements_of(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that run on import, also those inside of `if`, `try` and `with`."""
    waiting: list[ast.stmt] = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and not is_start(node):
            waiting += reversed([*node.body, *node.orelse])
        elif isinstance(node, ast.With):
            waiting += reversed(node.body)
        elif isinstance(node, ast.Try):
            handlers = [statement for handler in node.handlers for statement in handler.body]
            waiting += reversed([*node.body, *handlers, *node.orelse, *node.finalbody])


def takes_hyperparameters(module: Module, node: Callable, *, of_class: bool = False) -> bool:
    """Return whether a function takes hyperparameters of KerasTuner.

    Args:
        module: has the function.
        node: the function.
        of_class: whether its first argument is the instance of a class.
    """
    signature = node.args
    arguments = [*signature.posonlyargs, *signature.args][1 if of_class else 0 :]
    if any(_is_named_so(module, argument) for argument in (*arguments, *signature.kwonlyargs)):
        return True
    return bool(arguments) and any(_asks(part, arguments[0].arg) for part in ast.walk(node))


def _is_named_so(module: Module, argument: ast.arg) -> bool:
    if argument.arg == HYPERPARAMETERS:
        return True
    note = argument.annotation
    if isinstance(note, ast.Constant) and isinstance(note.value, str):
        return note.value.rpartition(".")[2] == CLASS
    return note is not None and module.full_name(note).rpartition(".")[2] == CLASS


def _asks(node: ast.AST, name: str) -> bool:
    """Return whether a node is a call such as `name.Int(…)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    holder = node.func.value
    return node.func.attr in METHODS and isinstance(holder, ast.Name) and holder.id == name


def named_builders(module: Module) -> Iterator[tuple[str, ast.stmt, Callable, int]]:
    """Yield the functions that take hyperparameters: name, statement, function, and arguments that are given.

    A name may be bound to a lambda, to a `functools.partial` of a function, or to the function that another
    one makes.
    """
    functions = {
        node.name: node
        for node in statements_of(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for node in statements_of(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if takes_hyperparameters(module, node):
                yield node.name, node, node, 0
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            builder = _made(module, node.value, functions)
            if builder is not None and len(targets) == 1 and isinstance(targets[0], ast.Name):
                yield targets[0].id, node, *builder


def _made(module: Module, value: ast.expr, functions: dict[str, Function]) -> tuple[Callable, int] | None:
    """Return the function that an expression makes, with the number of its arguments that are given."""
    if isinstance(value, ast.Lambda):
        return (value, 0) if takes_hyperparameters(module, value) else None
    if not isinstance(value, ast.Call):
        return None
    if module.full_name(value.func) == PARTIAL and value.args and isinstance(value.args[0], ast.Name):
        partial = functions.get(value.args[0].id)
        if partial is not None and takes_hyperparameters(module, partial):
            return partial, len(value.keywords) + len(value.args) - 1
    if isinstance(value.func, ast.Name) and (maker := functions.get(value.func.id)) is not None:
        return _returned(module, maker)
    return None


def _returned(module: Module, maker: Function) -> tuple[Callable, int] | None:
    """Return the function with hyperparameters that a function defines inside and returns."""
    inner = {node.name: node for node in maker.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(maker):
        returned = node.value if isinstance(node, ast.Return) else None
        function = inner.get(returned.id) if isinstance(returned, ast.Name) else returned
        if isinstance(function, ast.FunctionDef | ast.Lambda) and takes_hyperparameters(module, function):
            return function, 0
    return None


def builder_methods(module: Module, node: ast.ClassDef) -> Iterator[tuple[Function, bool]]:
    """Yield a class's methods that take hyperparameters, and whether each needs an instance."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {module.full_name(decorator) for decorator in method.decorator_list}
            needs_instance = "staticmethod" not in decorators
            if takes_hyperparameters(module, method, of_class=needs_instance):
                yield method, not decorators & {"staticmethod", "classmethod"}


def called_names(modules: list[Module]) -> frozenset[str]:
    """Return the names of all functions that the code calls."""
    calls = (node.func for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    return frozenset(
        call.attr if isinstance(call, ast.Attribute) else call.id
        for call in calls
        if isinstance(call, ast.Attribute | ast.Name)
    )
