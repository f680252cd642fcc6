"""The fork server for runners: imports their libraries once and forks runners on request.

Command line: `python -m workers.runner.forkserver --socket N --parent PID --environment JSON`. Libraries read
the process environment when they are imported, so there is one fork server for each `Environment`. It never
runs a task.
"""

import argparse
import contextlib
import importlib
import json
import os
import socket
import sys
from collections.abc import Sequence

from jobs.messages.fork import FORK_REQUEST, MOST_DESCRIPTORS, ForkIntoSandbox, ForkRequest
from workers.confinement.forking.interpreter import run_command
from workers.confinement.forking.into_sandbox import enter_sandbox, take_streams
from workers.confinement.forking.server import Server, check_forkable
from workers.confinement.isolation.confine import confine
from workers.runner.environment import Environment
from workers.runner.registry import modules_with_jax
from workers.runner.reproducibility import cpu_model, versions
from workers.system.kernel import become_subreaper, set_process_name
from workers.system.parent_death import die_with_parent

_FURTHER = (
    "workers.runner.standby",
    "workers.engine.tasks.warmup",
    # Executes models with user code beside a task.
    "workers.serving.child.serve",
    # Reads the file of a data set version. It imports pandas when it converts for the first time.
    "pyarrow.compute",
    "pandas",
    # JAX imports it when it compiles for the first time.
    "jaxlib.mlir.dialects.mhlo",
)


def run(request: ForkRequest | ForkIntoSandbox, descriptors: Sequence[int], parent: int) -> int:
    """Run the requested module as a new interpreter would, and return its exit status."""
    if isinstance(request, ForkIntoSandbox):
        enter_sandbox(descriptors, parent)
    set_process_name("ty-runner")
    events = take_streams(descriptors)
    os.chdir(request.folder)
    if request.confinement is not None:
        confine(request.confinement)
    command = ("-m", request.module, "--events-fd", str(events), "--parent", str(parent))
    return run_command((sys.executable, *command), request.environment, request.folder)


def runner_server(connection: socket.socket) -> Server[ForkRequest | ForkIntoSandbox]:
    """Return the server that forks runners for requests on `connection`."""
    # Otherwise the end of a sandbox would wait until the machine's first process has noticed its orphans.
    become_subreaper()
    return Server(
        connection, streams=MOST_DESCRIPTORS, parse=FORK_REQUEST.validate_json, run=run, prepare=prepare
    )


def prepare(request: ForkRequest | ForkIntoSandbox) -> None:
    """Import what tasks with user code need, before the first such task."""
    if isinstance(request, ForkIntoSandbox):
        from workers.runner.libraries import import_for_code

        import_for_code()


def preload(environment: Environment) -> None:
    """Import the runners' libraries, in the environment that they will have.

    Raises:
        RuntimeError: the imports started a JAX backend, whose threads forks would lack.
    """
    environment.apply()
    from workers.runner.libraries import import_keras, keep_arrow_from_threads, lasting_imports

    keep_arrow_from_threads()
    # Garbage collection writes to the objects that it visits, so forks would copy the shared pages.
    with lasting_imports():
        import_keras()
        importlib.import_module("workers.runner.serve")
        for module in (*modules_with_jax(), *_FURTHER):
            importlib.import_module(module)
        # Their results are cached, and forks inherit the caches.
        importlib.import_module("workers.engine.compiled.aot").static_fingerprint()
        versions()
        cpu_model()
    check_forkable()


def main() -> None:
    """Import the libraries and serve fork requests."""
    parser = argparse.ArgumentParser(prog="workers.runner.forkserver")
    parser.add_argument("--socket", type=int, required=True, help="inherited descriptor of the socket")
    parser.add_argument(
        "--parent", type=int, required=True, help="pid of the supervisor, with which this process dies"
    )
    parser.add_argument("--environment", required=True, help="the `Environment` of all runners, as JSON")
    options = parser.parse_args()
    die_with_parent(options.parent)
    set_process_name("ty-forkserver")
    connection = socket.socket(fileno=options.socket)
    connection.set_inheritable(False)
    preload(Environment(**json.loads(options.environment)))
    # The supervisor has closed the socket.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        runner_server(connection).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
