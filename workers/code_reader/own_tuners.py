"""Finds classes of users that inherit from a tuner of KerasTuner."""

import ast
from collections.abc import Iterator

from jobs.messages.code import CodeNotice
from workers.code_reader.builders import statements_of
from workers.code_reader.modules import Module, printable
from workers.code_reader.tuners import tuner_of


def notices_of_tuners(module: Module) -> Iterator[CodeNotice]:
    """Yield a notice for each class of tuners: an experiment has a search of its own, and does not use it."""
    for node in statements_of(module.tree):
        if isinstance(node, ast.ClassDef) and any(tuner_of(module.full_name(base)) for base in node.bases):
            message = (
                f"{node.name} is a tuner, which an experiment does not use: its methods, such as run_trial, "
                "have no effect. Write them as the fit of a HyperModel class, or start the file as a script"
            )
            yield CodeNotice(path=module.path, line=node.lineno, message=printable(message))
