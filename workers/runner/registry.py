"""Which engine function runs which kind of task: the one visible table."""

import importlib
from collections.abc import Callable
from typing import Any

from jobs.contracts.task import Task
from workers.engine.report import Report

RunTask = Callable[[Any, Report], dict[str, Any]]

ENGINE: dict[str, str] = {
    "profile": "workers.engine.tasks.profile",
    "trial": "workers.engine.tasks.trial",
    "train": "workers.engine.tasks.train",
    "ensemble": "workers.engine.tasks.ensemble",
    "quantize": "workers.engine.tasks.quantize",
    "register": "workers.engine.tasks.register",
    "gate": "workers.engine.tasks.gate",
}
"""Task kind → module with `run(task, report) -> result`."""

WITHOUT_JAX = frozenset({"profile"})
"""Kinds that start fast because they need neither Keras nor JAX."""


def load(task: Task) -> RunTask:
    """Import the engine module of `task` and return its `run`."""
    run: RunTask = importlib.import_module(ENGINE[task.kind]).run
    return run
