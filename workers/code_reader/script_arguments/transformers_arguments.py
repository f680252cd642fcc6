"""Reads the data classes whose fields are the arguments of `HfArgumentParser` of transformers."""

import ast
from collections.abc import Iterable

from jobs.messages.code import CodeArgument
from workers.code_reader.modules import Module, constant, printable
from workers.code_reader.script_arguments.argparse_arguments import Declared
from workers.code_reader.script_arguments.loops.dataclass_fields import ClassField, DataClasses
from workers.code_reader.script_arguments.parser_names import method_of

PARSER = "transformers.HfArgumentParser"
WORDS = ["true", "false"]
LISTS = ("list", "List")


def declared_by_transformers(module: Module, modules: Iterable[Module]) -> Declared | None:
    """Return the fields of the classes that an `HfArgumentParser` gets; None without one."""
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    made = [call for call in calls if module.full_name(call.func) == PARSER and call.args]
    if not made:
        return None
    classes = DataClasses(module, modules)
    arguments: list[CodeArgument] = []
    unknown: list[str] = []
    for call in made:
        given = call.args[0]
        for each in given.elts if isinstance(given, ast.Tuple | ast.List) else [given]:
            fields = classes.fields_of(each)
            if fields is None:
                unknown.append(ast.unparse(each))
            else:
                arguments += [argument for field in fields for argument in _of_field(module, field)]
    note = ""
    if unknown:
        note = (
            f"The fields of {', '.join(unknown)} are arguments too, and were not found: add them in the form."
        )
    ignores_others = any(
        method_of(call) == "parse_args_into_dataclasses"
        and any(k.arg == "return_remaining_strings" and constant(k.value) is True for k in call.keywords)
        for call in calls
    )
    return Declared(arguments, printable(note), ignores_others=ignores_others)


def _of_field(module: Module, field: ClassField) -> list[CodeArgument]:
    kind = field.type
    if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
        kind = ast.parse(kind.value, mode="eval").body
    inner, is_list, choices = _inner(module, kind)
    name = module.source(inner) or "str"
    flag = printable(f"--{field.name}")
    names = list(dict.fromkeys([flag, flag.replace("_", "-")]))
    described = constant(field.metadata.get("help"))
    default = None if field.is_required else module.source(field.default) or "None"
    is_bool = name == "bool" and not is_list
    argument = CodeArgument(
        name=flag,
        default="False" if is_bool and default is None else default,
        annotation=name if choices is None else "str",
        help=printable(described) if isinstance(described, str) else None,
        choices=choices,
        flags=names,
        nargs="+" if is_list else "?" if is_bool else None,
        const="True" if is_bool else None,
        words=WORDS if is_bool else [],
        library="transformers",
    )
    return [argument]


def _inner(module: Module, node: ast.expr) -> tuple[ast.expr, bool, str | None]:
    """Return a field's type without `Optional` and lists, whether it is a list, and its choices."""
    if isinstance(node, ast.BinOp):
        return _inner(module, node.right if _is_none(node.left) else node.left)
    if isinstance(node, ast.Subscript):
        last = module.full_name(node.value).rpartition(".")[2]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if last == "Literal":
            values = [constant(part) for part in parts]
            return node, False, repr(values)
        if last in ("Optional", "Union"):
            return _inner(module, next((part for part in parts if not _is_none(part)), parts[0]))
        if last in LISTS:
            return _inner(module, parts[0])[0], True, None
    return node, False, None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
