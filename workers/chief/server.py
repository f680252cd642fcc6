"""The gRPC server: limits, errors as statuses, and how the chief comes to an end."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from jobs.actions import external_search
from jobs.contracts.formats.reading import Refused
from jobs.errors import BadInput, Forbidden, NotFound, TrainyardError
from jobs.models import Job
from jobs.states import FINAL
from workers.chief import wire
from workers.chief.chief import Call, Chief, calls
from workers.node.suggestion_process import Oracle

log = logging.getLogger(__name__)

LARGEST_MESSAGE = 4 * 2**20
TEND_SECONDS = 1.0
LINGER_SECONDS = 600.0
"""How long the chief of an ended search answers scripts that stay connected and call no more."""
ORACLE_PATIENCE = 120.0
CLOSE_SECONDS = 2.0
OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", 4 * LARGEST_MESSAGE),
    ("grpc.so_reuseport", 0),  # a second chief on a port that is taken shall hear so
    # A machine that vanishes closes no connection: it is asked whether it is there.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
)
STATUSES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (Refused, grpc.StatusCode.INVALID_ARGUMENT),
    (BadInput, grpc.StatusCode.INVALID_ARGUMENT),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (Forbidden, grpc.StatusCode.PERMISSION_DENIED),
    (TrainyardError, grpc.StatusCode.FAILED_PRECONDITION),
)


class PortTaken(Exception):
    """Nobody can listen there; the sentence says where."""


async def serve(
    job_id: int, *, host: str, port: int, grace: float, folder: Path, ready: Callable[[int], None]
) -> Job:
    """Answer the scripts of a search until it is over and they have left, or a signal comes.

    Args:
        job_id: the search.
        host: the address to listen on.
        port: 0 picks one.
        grace: seconds after which a script that hung up loses its trial.
        folder: for the process that makes suggestions.
        ready: is told the port.

    Raises:
        PortTaken: somebody else listens there.
    """
    oracle = Oracle(folder / "oracle", patience=ORACLE_PATIENCE)
    chief = Chief(job_id, oracle=oracle, grace=grace)
    server = grpc.aio.server(options=OPTIONS, handlers=[_handler(chief)])
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise PortTaken(f"{host}:{port} cannot be listened on: {error}") from error
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    await server.start()
    try:
        await chief.db(lambda: external_search.listens(job_id, host=host, port=bound))
        await chief.tend(bound)
        ready(bound)
        return await _until_over(chief, bound, told)
    finally:
        # First deaf, then an answer to all who wait: what they ask next waits for the next chief.
        stopping = asyncio.create_task(server.stop(CLOSE_SECONDS))
        await asyncio.sleep(0)
        chief.close()
        await stopping
        await oracle.close()


async def _until_over(chief: Chief, port: int, told: asyncio.Event) -> Job:
    while True:
        root, connected = await chief.tend(port)
        silent = time.monotonic() - chief.called
        if root.state in FINAL and (not connected or silent > LINGER_SECONDS):
            return root
        try:
            await asyncio.wait_for(told.wait(), TEND_SECONDS)
        except TimeoutError:
            continue
        return root


def _handler(chief: Chief) -> grpc.GenericRpcHandler:
    methods = {
        name: grpc.unary_unary_rpc_method_handler(
            _answered(chief, name, call),
            request_deserializer=wire.message(f"{name}Request").FromString,
            response_serializer=_serialized,
        )
        for name, call in calls(chief).items()
    }
    return grpc.method_handlers_generic_handler(wire.SERVICE, methods)


def _serialized(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _answered(chief: Chief, name: str, call: Call) -> Callable[[Any, Any], Any]:
    """Turn refusals into statuses that the script's traceback shows."""

    async def answer(request: Any, context: Any) -> Any:
        chief.called = time.monotonic()
        try:
            return await call(request, context.peer())
        except (Refused, TrainyardError) as refusal:
            code = next(code for kind, code in STATUSES if isinstance(refusal, kind))
            log.warning("%s is refused: %s", name, refusal)
            await context.abort(code, str(refusal)[:1000])
        except Exception as error:  # one call that we cannot cope with must not end the others
            log.exception("%s failed", name)
            await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"[:1000])

    return answer
