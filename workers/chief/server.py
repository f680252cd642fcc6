"""Runs the chief's gRPC server: message limits, error statuses, shutdown."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from jobs.actions.search import external_search
from jobs.errors import BadInput, Forbidden, NotFound, TrainyardError
from jobs.models import Job
from jobs.spec.formats.reading import FormatError
from jobs.states import FINAL
from workers.chief import protocol
from workers.chief.chief import CallHandler, Chief, call_handlers
from workers.node.suggestion_process import SuggestionProcess

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 4 * 2**20
MAINTAIN_SECONDS = 1.0
# How long the chief of an ended search waits for scripts that stay connected without calling.
LINGER_SECONDS = 600.0
SUGGESTION_TIMEOUT_SECONDS = 120.0
CLOSE_SECONDS = 2.0
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", 4 * MAX_MESSAGE_BYTES),
    # A second chief on the same port must fail, instead of taking a part of the calls.
    ("grpc.so_reuseport", 0),
    # A machine that vanishes closes no connection; keepalive pings detect it.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
)
# The first match counts, so subclasses of TrainyardError are before it.
STATUSES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (FormatError, grpc.StatusCode.INVALID_ARGUMENT),
    (BadInput, grpc.StatusCode.INVALID_ARGUMENT),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (Forbidden, grpc.StatusCode.PERMISSION_DENIED),
    (TrainyardError, grpc.StatusCode.FAILED_PRECONDITION),
)


class PortInUse(Exception):
    """The port cannot be bound; the message names it."""


async def serve(
    job_id: int, *, host: str, port: int, grace: float, folder: Path, ready: Callable[[int], None]
) -> Job:
    """Answer a search's scripts until it has ended and they have disconnected, or until a signal.

    Args:
        job_id: the search.
        host: the address to listen on.
        port: 0 chooses a free one.
        grace: seconds after which a disconnected script loses its trial.
        folder: the suggestion process's folder.
        ready: called with the port.

    Raises:
        PortInUse: another process listens there.
    """
    suggestion_process = SuggestionProcess(folder / "oracle", timeout=SUGGESTION_TIMEOUT_SECONDS)
    chief = Chief(job_id, suggestion_process=suggestion_process, grace=grace)
    server = grpc.aio.server(options=OPTIONS, handlers=[_handler(chief)])
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise PortInUse(f"{host}:{port} cannot be bound: {error}") from error
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_requested.set)
    await server.start()
    try:
        await chief.db(lambda: external_search.record_address(job_id, host=host, port=bound))
        await chief.maintain(bound)
        ready(bound)
        return await _run_until_ended(chief, bound, stop_requested)
    finally:
        # Stop accepting calls before answering the waiting ones: scripts repeat those at the next chief.
        stopping = asyncio.create_task(server.stop(CLOSE_SECONDS))
        await asyncio.sleep(0)  # `stop` begins
        chief.close()
        await stopping
        await suggestion_process.close()


async def _run_until_ended(chief: Chief, port: int, stop_requested: asyncio.Event) -> Job:
    while True:
        root, connected = await chief.maintain(port)
        silent = time.monotonic() - chief.last_call
        if root.state in FINAL and (not connected or silent > LINGER_SECONDS):
            return root
        try:
            await asyncio.wait_for(stop_requested.wait(), MAINTAIN_SECONDS)
        except TimeoutError:
            continue
        return root


def _handler(chief: Chief) -> grpc.GenericRpcHandler:
    methods = {
        name: grpc.unary_unary_rpc_method_handler(
            _status_on_error(chief, name, call),
            request_deserializer=protocol.message(f"{name}Request").FromString,
            response_serializer=protocol.message(f"{name}Response").SerializeToString,
        )
        for name, call in call_handlers(chief).items()
    }
    return grpc.method_handlers_generic_handler(protocol.SERVICE, methods)


def _status_on_error(chief: Chief, name: str, call: CallHandler) -> Callable[[Any, Any], Any]:
    """Wrap a call handler: errors become statuses, which the script's traceback shows."""

    async def answer(request: Any, context: Any) -> Any:
        chief.last_call = time.monotonic()
        try:
            return await call(request, context.peer())
        except (FormatError, TrainyardError) as error:
            code = next(code for kind, code in STATUSES if isinstance(error, kind))
            log.warning("%s was refused: %s", name, error)
            await context.abort(code, str(error)[:1000])
        # An internal error in one call must not end the others.
        except Exception as error:
            log.exception("%s failed", name)
            await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"[:1000])

    return answer
