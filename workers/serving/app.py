"""The ASGI application: routes requests to handlers and turns errors into responses."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from jobs.spec.signature import Signature
from workers.model_process.errors import (
    Forbidden,
    NotFound,
    ServingError,
    Unavailable,
)
from workers.serving.access import Access
from workers.serving.asgi import Receive, Request, Scope
from workers.serving.bodies.codec import BodyCodec
from workers.serving.bodies.memory import BodyMemory
from workers.serving.counting import RequestCounter
from workers.serving.hosts import check_host
from workers.serving.metrics import Metrics
from workers.serving.protocols import oip_infer, tfs_examples, tfs_paths, tfs_views
from workers.serving.protocols.oip_infer import InferCall
from workers.serving.protocols.target import Target, not_found
from workers.serving.protocols.tfs_predict import Array, PredictCall
from workers.serving.releases.catalog import Catalog
from workers.serving.releases.endpoint import PickedVersion
from workers.serving.response import (
    BINARY,
    JSON,
    TEXT,
    Headers,
    Response,
    Send,
    error_response,
    json_response,
)
from workers.serving.settings import Limits
from workers.serving.table import ServedTable
from workers.serving.traffic import Traffic
from workers.serving.version_status import VersionStatus

logger = logging.getLogger("trainyard.serving")

METRICS_PATH = "/monitoring/prometheus/metrics"
INFER_HEADER_LENGTH = b"inference-header-content-length"
"""The header with the bytes of JSON that precede raw tensors."""
# A load balancer has no token.
_OPEN_PATHS = ("/v2/health/live", "/v2/health/ready")


class Authenticator(Protocol):
    """Checks whether a request may be answered."""

    async def check(self, request: Request) -> Access:
        """Return the access of the request. Raises a `ServingError` if it has none."""

    async def reaches(self, request: Request, model: str) -> bool:
        """Return whether the request may ask a model."""

    def is_known(self, request: Request, model: str) -> bool:
        """Return whether it is known already that the request may ask a model, and has no warning."""


class ServingApp:
    """Serves TensorFlow Serving's REST API, the Open Inference Protocol and the metrics of one catalog."""

    def __init__(
        self,
        catalog: Catalog,
        metrics: Metrics,
        traffic: Traffic,
        limits: Limits,
        authenticator: Authenticator | None,
        bodies: BodyCodec,
        hosts: tuple[str, ...] | None = None,
    ) -> None:
        self._catalog, self._limits, self._metrics = catalog, limits, metrics
        self._counter = RequestCounter(catalog, metrics, traffic)
        self._memory = BodyMemory(limits.bodies_bytes)
        self._authenticator, self._bodies, self._hosts = authenticator, bodies, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ServingError as error:
            response = error_response(error)
        except Exception:
            logger.exception("%s %s", request.method, request.path)
            response = error_response(ServingError("Internal error"))
        finally:
            self._memory.free(request.held)
        if request.access is not None and request.access.warning is not None:
            warning = f'299 - "{request.access.warning}"'.encode("latin-1", "replace")
            response.headers = [*(response.headers or JSON), (b"warning", warning)]
        await response.send(send)

    async def _answer(self, request: Request) -> Response:
        path = request.path
        if self._hosts is not None:
            check_host(request, self._hosts)
        if self._authenticator is not None and path not in _OPEN_PATHS:
            request.access = await self._authenticator.check(request)
        # TensorFlow Serving's paths are case-insensitive.
        if path[:4].lower() == "/v1/":
            return await self._tensorflow(request)
        if path == "/v2" or path.startswith("/v2/"):
            return await self._inference(request)
        if path == METRICS_PATH and request.method == "GET":
            return Response(self._metrics.text(self._reached(request)), headers=TEXT)
        raise NotFound("Not found")

    async def _tensorflow(self, request: Request) -> Response:
        verb, target = tfs_paths.route(request.method, request.path)
        if not await self._reaches(request, target):
            raise NotFound(no_versions(target) if verb == "status" else not_found(target))
        match verb:
            case "predict":
                return await self._with_metrics(request, target, "predict", self._predict(request, target))
            case "status":
                return Response(tfs_views.encode_status(self._statuses(target)))
            case "metadata":
                version = self._catalog.pick(target).version
                body = tfs_views.encode_metadata(
                    target.model, version.approved.number, version.signature_now()
                )
                return Response(body)
            case "classify" | "regress":
                return await self._with_metrics(request, target, verb, self._examples(request, target, verb))

    async def _predict(self, request: Request, target: Target) -> Response:
        deadline = request.deadline(self._limits.request_seconds)
        body = await request.body(self._limits.body_bytes, deadline, self._memory)

        async def parse(signature: Signature, table: ServedTable | None) -> PredictCall:
            return await self._bodies.parse_predict(body, signature, deadline, table)

        picked, signature, call = await self._parsed(request, target, parse)
        outputs = await picked.version.predict(call.arrays, request, deadline)
        answer = await self._bodies.encode_predict(outputs, signature, rows=call.rows, deadline=deadline)
        return predict_response(picked, answer)

    async def _examples(self, request: Request, target: Target, verb: tfs_examples.Verb) -> Response:
        deadline = request.deadline(self._limits.request_seconds)
        body = await request.body(self._limits.body_bytes, deadline, self._memory)

        async def parse(signature: Signature, _: ServedTable | None) -> list[Array]:
            labels = self._catalog.pick(target).version.approved.class_labels
            tfs_examples.check_allowed(verb, signature, labels)
            return await self._bodies.parse_examples(body, signature, deadline)

        picked, signature, arrays = await self._parsed(request, target, parse)
        labels = picked.version.approved.class_labels
        # Another version may serve by now, with other labels.
        tfs_examples.check_allowed(verb, signature, labels)
        outputs = await picked.version.predict(arrays, request, deadline)
        answer = await self._bodies.encode_results(verb, outputs, labels, signature, deadline)
        return Response(answer, headers=with_version_headers(picked, JSON))

    async def _parsed[Call](
        self,
        request: Request,
        target: Target,
        parse: Callable[[Signature, ServedTable | None], Awaitable[Call]],
    ) -> tuple[PickedVersion, Signature, Call]:
        """Return the version that answers, its signature and the call parsed for it.

        The version is picked after the body is read, which may take long, and again after a long body was
        parsed: another version may serve by then.
        """
        picked = self._pick(request, target)
        while True:
            signature, table = picked.version.signature_now(), picked.version.table
            call = await parse(signature, table)
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
        self, request: Request, target: Target, api: str, answer: Awaitable[Response]
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
            # Later: the request is answered first.
            asyncio.get_running_loop().call_soon(
                self._counter.count, target.model, request.version, api, status, seconds
            )

    def _statuses(self, target: Target) -> list[VersionStatus]:
        try:
            statuses = self._catalog.endpoint(target).statuses()
        except NotFound:
            statuses = []
        number = target.version
        # TensorFlow Serving ignores the label here and returns all versions.
        if target.label is not None and statuses:
            number = self._catalog.pick(target).version.approved.number
        if number is not None:
            statuses = [status for status in statuses if status.number == number]
        if not statuses:
            raise NotFound(no_versions(target._replace(version=number)))
        return statuses

    async def _reaches(self, request: Request, target: Target) -> bool:
        return self._authenticator is None or await self._authenticator.reaches(request, target.model)

    def _reached(self, request: Request) -> frozenset[str] | None:
        """Return the models that the caller may ask; None for all."""
        return None if request.access is None else request.access.endpoints

    async def _inference(self, request: Request) -> Response:
        match request.method, request.path:
            case "GET", "/v2":
                return json_response(oip_infer.SERVER)
            case "GET", "/v2/health/live":
                return json_response({"live": True})
            case "GET", "/v2/health/ready":
                self._catalog.check_ready()
                return json_response({"ready": True})
            case "POST", "/v2/repository/index":
                return json_response(self._index(self._reached(request)))
            case "POST", path if path.startswith("/v2/repository/"):
                raise Forbidden("The dashboard decides what to load")
        route = oip_infer.model_route(request.path)
        if route is None or (request.method == "POST") != (route.verb == "infer"):
            raise NotFound(f"Not found: {request.method} {request.path}")
        if not await self._reaches(request, route.target):
            raise NotFound(not_found(route.target))
        match route.verb:
            case "infer":
                return await self._with_metrics(
                    request, route.target, "infer", self._infer(request, route.target)
                )
            case "ready":
                picked = self._catalog.pick(route.target)
                if picked.version.state != "AVAILABLE":
                    raise Unavailable(f"Model {route.target.model} is not ready", retry_after=1)
                return json_response({"name": route.target.model, "ready": True})
            case _:
                version = self._catalog.pick(route.target).version
                available = self._catalog.endpoint(route.target).available()
                numbers = [each.approved.number for each in available]
                return Response(
                    oip_infer.encode_metadata(route.target.model, numbers, version.signature_now())
                )

    async def _infer(self, request: Request, target: Target) -> Response:
        deadline = request.deadline(self._limits.request_seconds)
        body = await request.body(self._limits.body_bytes, deadline, self._memory)
        header_length = request.header(INFER_HEADER_LENGTH)

        async def parse(signature: Signature, table: ServedTable | None) -> InferCall:
            return await self._bodies.parse_infer(body, header_length, signature, deadline, table)

        picked, signature, call = await self._parsed(request, target, parse)
        outputs = await picked.version.predict(call.arrays, request, deadline)
        number = picked.version.approved.number
        answer = await self._bodies.encode_infer(call, outputs, target.model, number, signature, deadline)
        return infer_response(picked, answer)

    def _index(self, reached: frozenset[str] | None) -> list[dict[str, str]]:
        return [
            {
                "name": model,
                "version": str(status.number),
                "state": status.state,
                "reason": status.error or "",
            }
            for model, endpoint in self._catalog.endpoints.items()
            if reached is None or model in reached
            for status in endpoint.statuses()
        ]


def no_versions(target: Target) -> str:
    """Return TensorFlow Serving's message for the status of a model or version that does not exist."""
    what = "any versions" if target.version is None else f"version {target.version}"
    return f"Could not find {what} of model {target.model}"


def predict_response(picked: PickedVersion, body: bytes | memoryview) -> Response:
    """Return the response to a predict request."""
    return Response(body, headers=with_version_headers(picked, JSON))


def infer_response(picked: PickedVersion, answer: oip_infer.Encoded) -> Response:
    """Return the response to an infer request."""
    if answer.header_length is None:
        return Response(answer.body, headers=with_version_headers(picked, JSON))
    length = (INFER_HEADER_LENGTH, str(answer.header_length).encode())
    return Response(answer.body, headers=[*with_version_headers(picked, BINARY), length])


def with_version_headers(picked: PickedVersion, headers: Headers) -> Headers:
    """Return the headers of an answer, with those that name the version."""
    return [
        *headers,
        *picked.version.headers,
        (b"x-trainyard-variant", picked.variant.encode("latin-1", "replace")),
    ]
