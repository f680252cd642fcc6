"""The ASGI application: routes requests to handlers and turns errors into responses."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import structlog

from jobs.logs.request_ids import request_id
from jobs.messages.release import ReleasedVersion
from jobs.spec.signature import Signature
from workers.model_process.errors import NotFound, ServingError
from workers.serving.asgi import Receive, Request, Scope
from workers.serving.bodies.memory import BodyMemory
from workers.serving.hosts import check_host
from workers.serving.metrics import Metrics
from workers.serving.operator_routes import OperatorRoutes
from workers.serving.protocols.protocol import (
    AnsweringVersion,
    Call,
    PredictionRoute,
    Protocol,
    predictions_by_name,
    protocol_of,
)
from workers.serving.protocols.target import Target, not_found
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.request_context import RequestContext
from workers.serving.request_log import RequestLog
from workers.serving.response import JSON, TEXT, Response, Send, error_response, json_error
from workers.serving.versions.version import LoadedVersion

logger = logging.getLogger("trainyard.serving")

HEADER = b"x-request-id"
METRICS_PATH = "/monitoring/prometheus/metrics"


class ServingApp:
    """Serves models by all protocols, and the server's metrics.

    Args:
        context: the parts that all answers share.
        metrics: this server's.
        request_log: gets the requests; None for none.
    """

    def __init__(
        self, context: RequestContext, metrics: Metrics, request_log: RequestLog | None = None
    ) -> None:
        self._catalog, self._counter, self._limits = context.catalog, context.counter, context.limits
        self._authenticator, self._bodies = context.authenticator, context.bodies
        self._hosts, self._protocols = context.hosts, context.protocols
        self._metrics = metrics
        self._memory = BodyMemory(self._limits.bodies_bytes)
        predictions_by_name(self._protocols)  # raises an error now, and not in the first large body's worker
        check_scrape = None if self._authenticator is None else self._authenticator.check_scrape
        self._operator = OperatorRoutes(self._catalog, metrics, check_scrape)
        self._request_log = request_log or RequestLog(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        request = Request(scope, receive)
        sent_id = request.header(HEADER)
        number = request_id(sent_id)
        # Of this request's task, so that each of its lines has the id.
        structlog.contextvars.bind_contextvars(request=number)
        protocol = protocol_of(request.path, self._protocols)
        try:
            response = await self._answer(request, protocol)
        except ServingError as error:
            response = error_response(error, error_encoder(protocol))
        # Whatever fails, the client receives an answer, and the next request is not affected.
        except Exception:
            logger.exception("%s %s", request.method, request.path)
            response = error_response(ServingError("Internal error"), error_encoder(protocol))
        finally:
            self._memory.free(request.held)
        if request.access is not None and request.access.warning is not None:
            warning = f'299 - "{request.access.warning}"'.encode("latin-1", "replace")
            response.headers = [*(response.headers or JSON), (b"warning", warning)]
        if sent_id is not None:
            response.headers = [*(response.headers or JSON), (HEADER, number.encode())]
        await response.send(send)
        self._request_log.write(request, response.status, time.monotonic() - request.arrived)

    async def _answer(self, request: Request, protocol: Protocol | None) -> Response:
        path = request.path
        if self._hosts is not None and not self._operator.is_open(path):
            check_host(request, self._hosts)
        if self._operator.owns(path):
            return await self._operator.answer(request)
        if self._authenticator is not None and (protocol is None or path not in protocol.open_paths):
            request.access = await self._authenticator.check(request)
        if protocol is None:
            return self._metrics_response(request)
        route = protocol.route(request.method, path, request.query)
        if isinstance(route, PredictionRoute):
            if not await self._reaches(request, route.target):
                raise NotFound(not_found(route.target))
            return await self._with_metrics(request, route, self._predict(request, route))
        if route.target is not None and not await self._reaches(request, route.target):
            raise NotFound(route.unknown(route.target))
        return route.respond(self._catalog, self._reached(request))

    def _metrics_response(self, request: Request) -> Response:
        if request.path != METRICS_PATH or request.method != "GET":
            raise NotFound("Not found")
        return Response(self._metrics.text(self._reached(request)), headers=TEXT)

    async def _predict(self, request: Request, route: PredictionRoute) -> Response:
        prediction, target = route
        deadline = request.deadline(self._limits.request_seconds)
        body = await request.body(self._limits.body_bytes, deadline, self._memory)
        header = None if prediction.header is None else request.header(prediction.header)

        async def parse(version: LoadedVersion, signature: Signature) -> Call:
            if prediction.check is not None:
                prediction.check(signature, version.approved.class_labels)
            return await self._bodies.parse(prediction, body, header, signature, deadline, version.table)

        picked, signature, call = await self._parse_body(request, target, parse)
        approved = picked.version.approved
        # Another version may serve by now, with other labels.
        if prediction.check is not None:
            prediction.check(signature, approved.class_labels)
        outputs = await picked.version.predict(call.arrays, request, deadline)
        version = answering(target.model, approved, signature)
        response = await self._bodies.encode(prediction, call, outputs, version, deadline)
        return name_version(response, picked)

    async def _parse_body[Parsed](
        self,
        request: Request,
        target: Target,
        parse: Callable[[LoadedVersion, Signature], Awaitable[Parsed]],
    ) -> tuple[PickedVersion, Signature, Parsed]:
        """Return the version that answers, its signature and the call parsed for it.

        The version is picked after the body is read, which may take long, and again after a long body was
        parsed: another version may serve by then.
        """
        picked = self._pick(request, target)
        while True:
            signature, table = picked.version.signature_now(), picked.version.table
            call = await parse(picked.version, signature)
            picked = self._pick(request, target)
            now = picked.version.signature_now()
            # Two versions may take the same columns and encode them in different ways.
            if picked.version.table is table and (now is signature or now == signature):
                return picked, signature, call

    def _pick(self, request: Request, target: Target) -> PickedVersion:
        picked = self._catalog.pick(target)
        request.version = picked.version.approved.number
        return picked

    async def _with_metrics(
        self, request: Request, route: PredictionRoute, answer: Awaitable[Response]
    ) -> Response:
        status = 500
        self._bodies.open_requests += 1
        try:
            response = await answer
            status = response.status
            return response
        except ServingError as error:
            status = error.status
            raise
        finally:
            self._bodies.open_requests -= 1
            seconds = time.monotonic() - request.arrived
            model, name = route.target.model, route.prediction.api
            # Later: the request is answered first.
            asyncio.get_running_loop().call_soon(
                self._counter.count, model, request.version, name, status, seconds
            )

    async def _reaches(self, request: Request, target: Target) -> bool:
        return self._authenticator is None or await self._authenticator.reaches(request, target.model)

    def _reached(self, request: Request) -> frozenset[str] | None:
        """Return the models that the caller may ask; None for all."""
        return None if request.access is None else request.access.endpoints


def answering(model: str, approved: ReleasedVersion, signature: Signature) -> AnsweringVersion:
    """Return the version of a release as the protocols describe it."""
    return AnsweringVersion(model, approved.number, signature, approved.class_labels, approved.multilabel)


def name_version(response: Response, picked: PickedVersion) -> Response:
    """Add the headers that name the version to a response, behind its content type."""
    headers = [*(response.headers or JSON)]
    variant = (b"x-trainyard-variant", picked.variant.encode("latin-1", "replace"))
    headers[1:1] = (*picked.version.headers, variant)
    response.headers = headers
    return response


def error_encoder(protocol: Protocol | None) -> Callable[[str, int], Response]:
    """Return the form in which a protocol writes errors, or the form for paths without one."""
    return json_error if protocol is None else protocol.encode_error
