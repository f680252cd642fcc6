"""Finds the engine function that runs a task; `jobs.kinds` names it by its dotted path."""

import importlib
from collections.abc import Callable
from typing import Any

from jobs.kinds import KINDS
from jobs.messages.task import Task
from jobs.spec.templates.info import ProgramEngines
from workers.engine.report import Report

RunTask = Callable[[Any, Report], dict[str, Any]]


def load(task: Task) -> RunTask:
    """Import a task's engine function."""
    module, _, function = (_program_engine(task) or KINDS[task.kind].engine).rpartition(".")
    run: RunTask = getattr(importlib.import_module(module), function)
    return run


def needs_jax(task: Task) -> bool:
    """Return whether a task needs Keras and JAX; without them a process starts fast."""
    return KINDS[task.kind].needs_jax and not runs_program(task)


def runs_program(task: Task) -> bool:
    """Return whether a task runs a program that trains by itself, as its own process."""
    return _program_engine(task) is not None


def _program_engine(task: Task) -> str | None:
    """Return the dotted path to the function that runs a task's program; None for other tasks."""
    facts, spec = KINDS[task.kind], getattr(task, "spec", None)
    engines: ProgramEngines | None = None if spec is None else spec.model.info.program
    if engines is None:
        return None
    if facts.has_trials:
        return engines.trials
    return engines.training if facts.trains else None


def modules_with_jax() -> list[str]:
    """List the modules with engine functions that need Keras and JAX."""
    return [facts.engine.rpartition(".")[0] for facts in KINDS.values() if facts.engine and facts.needs_jax]
