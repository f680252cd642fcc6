"""What a standby does before anybody has a task for it: start JAX and rehearse."""

import os
import shutil
from pathlib import Path

from jobs.contracts.control import Rehearse
from workers.runner.environment import PREALLOCATE, Environment
from workers.runner.libraries import configure_jax, import_keras
from workers.runner.parent_death import name_process


def environment_of(order: Rehearse) -> Environment:
    """Return the process environment that the standby is for."""
    return Environment(order.threads, order.platform, order.simulated_devices)


def rehearse(order: Rehearse) -> None:
    """Become warm; only what this process keeps in its memory remains.

    At normal priority: threads that XLA starts meanwhile stay, and without privileges none of them would ever
    be rid of a lower one. The node asks for it while cores are idle.

    Raises:
        RuntimeError: JAX would take most of a GPU's memory at once, for a task that may never come.
    """
    name_process("ty-standby")
    environment_of(order).apply()
    if not Environment.grows_on_demand(os.environ):
        raise RuntimeError(f"{PREALLOCATE} is not false: a standby would take a whole GPU ahead of need")
    configure_jax(order.compile_cache, "default")
    import_keras()
    from workers.engine.tasks import warmup

    warmup.rehearse(Path(order.folder), threads=order.threads)
    shutil.rmtree(order.folder, ignore_errors=True)
