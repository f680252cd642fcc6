"""Finds the engine function that runs a task; `jobs.kinds` names it by its dotted path."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from jobs.kinds import KINDS
from jobs.messages.task import Task
from workers.engine.report import Report

RunTask = Callable[[Any, Report], dict[str, Any]]


def load(task: Task) -> RunTask:
    """Import the engine function of a task."""
    own = _engines_of(task).get(task.kind)
    module, _, function = (own or KINDS[task.kind].engine).rpartition(".")
    run: RunTask = getattr(importlib.import_module(module), function)
    return run


def needs_jax(task: Task) -> bool:
    """Return whether a task needs Keras and JAX; without them a process starts fast."""
    return KINDS[task.kind].needs_jax and not runs_program(task)


def runs_program(task: Task) -> bool:
    """Return whether a task runs a program that trains by itself, as a process of its own."""
    return task.kind in _engines_of(task)


def _engines_of(task: Task) -> Mapping[str, str]:
    spec = getattr(task, "spec", None)
    return {} if spec is None else spec.model.info.engines


def modules_with_jax() -> list[str]:
    """List the modules of the engine functions that need Keras and JAX."""
    return [facts.engine.rpartition(".")[0] for facts in KINDS.values() if facts.engine and facts.needs_jax]
