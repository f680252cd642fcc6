"""Finds scripts that read arguments such as `name=value`, as with hydra, or by code of their own."""

import ast
from collections.abc import Iterator

from jobs.messages.code import GivenAs
from workers.code_reader.modules import Module, constant

SPLITS = ("split", "partition", "rsplit", "rpartition")
ARGUMENTS = "sys.argv"
FROM_ARGUMENTS = "omegaconf.OmegaConf.from_cli"
HYDRA = "hydra"


def given_as_in(module: Module) -> GivenAs | None:
    """Return the form of assignments that a module reads from the arguments; None if it reads none."""
    if any(name.partition(".")[0] == HYDRA for name in module.imported.values()):
        return "name=value"
    nodes = list(ast.walk(module.tree))
    named = [node for node in nodes if isinstance(node, ast.Attribute | ast.Name)]
    names = {module.full_name(node) for node in named}
    if FROM_ARGUMENTS in names:
        return "name=value"
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    divides = any(
        isinstance(call.func, ast.Attribute) and call.func.attr in SPLITS and constant(call.args[0]) == "="
        for call in calls
        if call.args
    )
    if ARGUMENTS not in names or not divides:
        return None
    texts = {constant(node) for node in nodes if isinstance(node, ast.Constant)}
    return "--name=value" if "--" in texts else "name=value"


def executed_files(module: Module, folder: str) -> Iterator[str]:
    """Yield the paths of files that a module executes, as in `exec(open("settings.py").read())`.

    Args:
        module: the module.
        folder: its folder, with dots; empty for the outermost one.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exec":
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value
                    yield f"{folder.replace('.', '/')}/{part.value}"
