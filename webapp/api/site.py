"""Builds the API: routers, error handlers and the OpenAPI document."""

import logging
import threading
from importlib import import_module
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from django.core.exceptions import (
    ObjectDoesNotExist,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, RawPostDataException, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError, ValidationErrorContext
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from jobs import program
from jobs.errors import TrainyardError
from jobs.spec.problems import Problem, from_items
from webapp.api import openapi
from webapp.api.auth import Credentials
from webapp.api.media import FiniteRenderer, JsonParser
from webapp.api.problems import SENTENCES, problem, problem_of
from webapp.http_errors import TooLarge, Unavailable, UnsupportedMediaType

log = logging.getLogger(__name__)

# One module per resource with its wing, in the order of the documentation; each has a `router`.
RESOURCES = (
    "people.account",
    "people.people",
    "people.projects",
    "people.quotas",
    "code.settings",
    "data.credentials",
    "data.datasets",
    "data.split_overviews",
    "data.resumable_uploads",
    "code.code",
    "code.environments",
    "code.dry_builds",
    "data.code_data",
    # Before experiments, whose address `experiments/<id>` matches theirs too.
    "experiments.mesh_estimates",
    "experiments.precision",
    "experiments.experiments",
    "experiments.search_spaces",
    # These come before jobs, whose last path would match theirs.
    "search.trials",
    "search.search_changes",
    "runs.model_reports",
    "search.answer",
    "storage.deletions",
    "runs.jobs",
    "runs.job_comparison",
    "storage.artifacts",
    "registry.registry",
    "registry.smaller_versions",
    "registry.promotions",
    "registry.endpoints",
    "registry.releases",
    "storage.storage",
    "runs.workers",
    "runs.reservations",
    "people.tokens",
    "audit.audit",
)

MAX_ITEMS = 1000
"""How many of pydantic's errors are read; a refused union has one for each of its types."""
MAX_IN_DETAIL = 3
"""How many errors the `detail` of a problem names; `errors` lists all."""


class Api(NinjaAPI):
    """django-ninja with problem documents as errors."""

    def __init__(self, **options: Any) -> None:
        super().__init__(docs_decorator=require_safe, **options)
        self._documents: dict[str | None, OpenAPISchema] = {}
        self._making = threading.Lock()

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Keep location, message and input in pydantic's errors; django-ninja drops the input."""
        items: list[dict[str, Any]] = []
        for context in error_contexts:
            model: Any = context.model
            # django-ninja wraps a single body in a model with one attribute, which clients do not send.
            single = getattr(model, "__read_from_single_attr__", None)
            # Far more than are reported; a request may have half a million.
            for item in islice(context.pydantic_validation_error.errors(include_url=False), MAX_ITEMS):
                loc = model.__ninja_flatten_map_reverse__.get(item["loc"], item["loc"])
                if single and loc[:1] == (single,):
                    loc = loc[1:]
                items.append({**item, "loc": loc, "source": model.__ninja_param_source__})
        return ValidationError(items)

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the document with every operation's error responses. It is made once per process."""
        # Making it takes a processor for half a second or more, and anyone may ask for it. Sixty requests
        # that made it at once, after a start, stopped the event loop until the process was replaced.
        if path_prefix not in self._documents:
            with self._making:
                if path_prefix not in self._documents:
                    schema = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
                    self._documents[path_prefix] = openapi.complete_document(schema)
        return self._documents[path_prefix]

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the function's name; a test keeps them unique."""
        return operation.view_func.__name__


def build() -> Api:
    """Return the API with every resource mounted."""
    api = Api(
        title="Trainyard",
        version=program.program_version(),
        description=openapi.DESCRIPTION,
        urls_namespace="api",
        auth=[Credentials()],
        parser=JsonParser(),
        renderer=FiniteRenderer(),
    )
    for name in RESOURCES:
        api.add_router("", import_module(f"webapp.api.{name}").router, tags=[name.rpartition(".")[2]])
    _handle_errors(api)
    return api


def _handle_errors(api: Api) -> None:
    def refused(_: HttpRequest, error: Any) -> HttpResponse:
        return problem_of(error)

    def invalid_row(_: HttpRequest, error: Any) -> HttpResponse:
        return problem(422, "; ".join(error.messages))

    def too_large(_: HttpRequest, __: Any) -> HttpResponse:
        return problem_of(TooLarge(SENTENCES[413]))

    api.add_exception_handler(TrainyardError, refused)
    api.add_exception_handler(ValidationError, _validation_problem)
    api.add_exception_handler(HttpError, _http_error)
    # A row that was deleted between the check of the permission and the change.
    api.add_exception_handler(ObjectDoesNotExist, lambda _, __: problem(404, SENTENCES[404]))
    api.add_exception_handler(Http404, lambda _, __: problem(404, SENTENCES[404]))
    api.add_exception_handler(DjangoValidationError, invalid_row)
    for broken in (SuspiciousOperation, UnreadablePostError, MultiPartParserError):
        api.add_exception_handler(broken, lambda _, __: problem(400, SENTENCES[400]))
    for large in (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent):
        api.add_exception_handler(large, too_large)
    api.add_exception_handler(RawPostDataException, _form_for_json)
    api.add_exception_handler(OperationalError, _database_unavailable)


def _http_error(_: HttpRequest, error: Any) -> HttpResponse:
    """Return the parser's own error, not the one that django-ninja wraps it in."""
    cause = error.__cause__
    if isinstance(cause, TrainyardError):
        return problem_of(cause)
    return problem(error.status_code, str(error))


def _form_for_json(request: HttpRequest, _: Any) -> HttpResponse:
    """Return the error for a JSON route that received a form."""
    return problem_of(
        UnsupportedMediaType(f"The body has the type {request.content_type}; send application/json.")
    )


def _database_unavailable(_: HttpRequest, error: Any) -> HttpResponse:
    log.warning("the database is unavailable: %s", error)
    return problem_of(
        Unavailable("The database is busy or unreachable. Try again in a moment.", retry_after=1)
    )


def _validation_problem(request: HttpRequest, error: Any) -> HttpResponse:
    problems: list[Problem] = []
    # Each part of the request is parsed once: a body may have a hundred thousand wrong fields.
    for source, items in groupby(error.errors, key=itemgetter("source")):
        problems += from_items(items, _input_of(request, source))
    detail = "; ".join(
        f"{invalid.pointer or 'The body'}: {invalid.message}" for invalid in problems[:MAX_IN_DETAIL]
    )
    if len(problems) > MAX_IN_DETAIL:
        detail += f" (and {len(problems) - MAX_IN_DETAIL} more)"
    return problem(422, detail, errors=problems)


def _input_of(request: HttpRequest, source: str) -> Any:
    """Return the input that an error's location refers to."""
    if source == "body":
        return JsonParser().parse_body(request) if request.body else None
    if source == "path":
        return dict(request.resolver_match.kwargs) if request.resolver_match else {}
    sent: dict[str, Any] = {"query": request.GET, "form": request.POST, "file": request.FILES}
    return dict(sent.get(source, {}))


api = build()
