"""Finds loops that train a model by hand, step by step, instead of by a model's `fit`.

No experiment calls such a loop, so its file can only be started as a script.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.messages.code import CodeEntry, CodeNotice
from workers.code_reader.builders import statements_of
from workers.code_reader.modules import Module
from workers.code_reader.uses import executed

STEPS = frozenset(
    {
        "value_and_grad",
        "grad",
        "GradientTape",
        "stateless_apply",
        "apply_gradients",
        "train_on_batch",
        "backward",
    }
)
"""Functions and methods that a step of a training by hand calls."""
LIBRARIES = ("keras", "tensorflow", "tf_keras", "keras_tuner", "kerastuner", "kt", "torch", "flax")
"""Packages whose base classes call the methods of a class themselves."""
Loop = ast.For | ast.While
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class OwnLoop:
    """A loop that trains.

    Attributes:
        line: its first line.
        end: its last line.
        starts: whether it runs when the file is started.
    """

    line: int
    end: int
    starts: bool

    @property
    def advice(self) -> str:
        """Return the ways to train in an experiment, for the page."""
        lines = f"line {self.line}" if self.line == self.end else f"lines {self.line} to {self.end}"
        what = (
            "start the file as a script that calls trainyard_report.report(epoch, loss=…)"
            if self.starts
            else "call its function in the last line, and start the file as a script with trainyard_report"
        )
        return f"{lines}: a training by hand, which no model's fit calls; {what}, or train in its train_step"


def own_loops(module: Module) -> list[OwnLoop]:
    """Return the loops of a file that train by hand, apart from those that a library calls."""
    training = _training_names(module)
    statements = list(statements_of(module.tree))
    started = {id(part) for node in statements if not isinstance(node, DEFINITION) for part in executed(node)}
    calling = {
        node.id
        for statement in statements
        if not isinstance(statement, DEFINITION)
        for node in executed(statement)
        if isinstance(node, ast.Name)
    }
    loops = []
    for owner, loop in _loops(module, statements):
        if _trains(loop, training):
            starts = id(loop) in started or owner in calling
            loops.append(OwnLoop(loop.lineno, loop.end_lineno or loop.lineno, starts))
    return loops


def notices_of_loops(module: Module, loops: list[OwnLoop]) -> Iterator[CodeNotice]:
    """Yield what can be done with each loop."""
    for loop in loops:
        yield CodeNotice(path=module.path, line=loop.line, message=loop.advice)


def script_of_loop(module: Module, loops: list[OwnLoop]) -> CodeEntry | None:
    """Return a file as a script if starting it trains; else None."""
    loop = next((loop for loop in loops if loop.starts), None)
    if loop is None:
        return None
    numbers = ", ".join(map(str, module.magics[:5]))
    note = f"To start it, remove the lines that only a notebook understands: {numbers}." if numbers else ""
    return CodeEntry(kind="script", name=module.path, path=module.path, line=loop.line, note=note)


def _loops(module: Module, statements: list[ast.stmt]) -> Iterator[tuple[str, Loop]]:
    """Yield the outermost loops of a file, each with the function or class around it."""
    for node in statements:
        # The statements inside of a block are in the list too.
        is_block = isinstance(node, ast.If | ast.With | ast.Try)
        if is_block or (isinstance(node, ast.ClassDef) and _has_library_base(module, node)):
            continue
        owner = node.name if isinstance(node, DEFINITION) else ""
        waiting: list[ast.AST] = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Loop):
                yield owner, part
            else:
                waiting += ast.iter_child_nodes(part)


def _has_library_base(module: Module, node: ast.ClassDef) -> bool:
    return any(module.full_name(base).partition(".")[0] in LIBRARIES for base in node.bases)


def _training_names(module: Module) -> set[str]:
    """Return the names of functions and objects that do a step of a training."""
    names: set[str] = set()
    while True:
        more = {
            name
            for node in statements_of(module.tree)
            if not (isinstance(node, ast.ClassDef) and _has_library_base(module, node))
            if (name := _bound_name(node)) is not None and _trains(node, names)
        }
        if more <= names:
            return names
        names |= more


def _bound_name(node: ast.stmt) -> str | None:
    if isinstance(node, DEFINITION):
        return node.name
    is_single = isinstance(node, ast.Assign) and len(node.targets) == 1
    target = node.targets[0] if is_single and isinstance(node, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else None


def _trains(node: ast.AST, names: set[str]) -> bool:
    """Return whether a part of the code calls a step of a training, or one of these names."""
    for part in ast.walk(node):
        if not isinstance(part, ast.Call):
            continue
        called = part.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        root = called.value if isinstance(called, ast.Attribute) else called
        if name in STEPS or (isinstance(root, ast.Name) and root.id in names):
            return True
    return False
