"""Warms up a standby before there is a task: it starts JAX and runs a small training."""

import os
import shutil
from pathlib import Path

from jobs.messages.control import Rehearse
from workers.runner.accelerator import use_accelerator
from workers.runner.environment import PREALLOCATE, Environment
from workers.runner.libraries import configure_jax, import_keras
from workers.system.kernel import set_process_name


def environment_of(request: Rehearse) -> Environment:
    """Return the process environment to warm up for."""
    return Environment(**request.model_dump(include=set(Environment._fields)))


def warm_up(request: Rehearse) -> None:
    """Prepare for tasks. Only the process' memory is kept; its files are deleted.

    Raises:
        RuntimeError: JAX would preallocate most GPU memory for a task that may never come.
        NoAccelerator: JAX cannot use this standby's GPU.
    """
    set_process_name("ty-standby")
    # The priority is not lowered for a warm-up: the threads that XLA starts would keep it, and without
    # privileges it could not be raised again.
    environment_of(request).apply()
    if not Environment.grows_on_demand(os.environ):
        raise RuntimeError(
            f"{PREALLOCATE} is not false: a standby would take a whole GPU before there is a task"
        )
    configure_jax(request.compile_cache, "default")
    # After the environment is set: Keras and JAX read it when they are imported.
    import_keras()
    use_accelerator(environment_of(request))
    from workers.engine.tasks import warmup

    warmup.warm_up(Path(request.folder), threads=request.threads)
    shutil.rmtree(request.folder, ignore_errors=True)
