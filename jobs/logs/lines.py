"""Configures logging through structlog: text lines locally, JSON in production, with masked secrets."""

import logging.config
import os
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from jobs.logs.masking import MASK, mask, mask_values_of

SECRET_WORDS = ("authorization", "cookie", "password", "secret", "token")
# Of Django, for hosts that are not allowed, forms with too many fields and the like.
REFUSALS = "django.security"
MAX_VALUE = 2000
# Tracebacks are longer than values, and their end has the error.
MAX_TRACEBACK = 20_000
FIELDS = ("suppressed", "outage")
"""Fields that records of the standard library may add to their line."""

_part: dict[str, str] = {}


def wants_json(environment: Mapping[str, str]) -> bool:
    """Return whether the log is JSON: in the production settings, or by `TRAINYARD_LOG_JSON`.

    For processes without Django's settings, which read the same variables.
    """
    text = environment.get("TRAINYARD_LOG_JSON", "").lower()
    if text:
        return text in ("1", "true")
    return environment.get("TRAINYARD_PUBLIC_URL", "").startswith("https://")


def set_part(name: str) -> None:
    """Name the part in each line of this process."""
    _part["part"] = name


def with_part(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Add the part's name."""
    return {**event, **_part}


def without_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Mask the values in fields with secret names."""
    for name in event:
        if any(word in name.lower() for word in SECRET_WORDS):
            event[name] = MASK
    return event


def shorten_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Shorten the values that clients choose, and omit tracebacks for requests that Django refuses.

    Otherwise one client could replace all log files, which are rotated, with a few hundred requests.
    """
    if str(event.get("logger", "")).startswith(REFUSALS):
        event.pop("exc_info", None)
    for name, value in event.items():
        if isinstance(value, str) and len(value) > MAX_VALUE:
            event[name] = f"{value[:MAX_VALUE]}… ({len(value):,} characters)"
    return event


def shorten_traceback(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Keep the end of a very long traceback."""
    text = event.get("exception")
    if isinstance(text, str) and len(text) > MAX_TRACEBACK:
        event["exception"] = f"({len(text):,} characters) …{text[-MAX_TRACEBACK:]}"
    return event


class Masked:
    """Renders a line, and masks the secrets in it.

    Args:
        render: renders the whole line, tracebacks included.
    """

    def __init__(self, render: structlog.typing.Processor) -> None:
        self._render = render

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> str:
        """Return the line without secrets."""
        return mask(str(self._render(logger, method, event)))


SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    with_part,
    without_secrets,
    shorten_values,
]


def logging_settings(*, as_json: bool) -> dict[str, Any]:
    """Return the standard library's configuration; structlog formats all records."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
        if as_json
        # Plain tracebacks: rich ones print all local variables, which is slow and may print secrets.
        else structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    )
    processors: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta
    ]
    if as_json:
        processors += [structlog.processors.format_exc_info, shorten_traceback]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structlog": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [*processors, Masked(renderer)],
                "foreign_pre_chain": [structlog.stdlib.ExtraAdder(allow=FIELDS), *SHARED],
            }
        },
        "filters": {"outages": {"()": "jobs.logs.outages.OutageFilter"}},
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": "structlog",
                "filters": ["outages"],
            }
        },
        "root": {"handlers": ["console"], "level": "INFO"},
        "loggers": {
            # `webapp.middleware` logs failed requests.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "ERROR"},
            "asyncio": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
        },
    }


def configure(settings: dict[str, Any]) -> None:
    """Configure the standard library and structlog (`LOGGING_CONFIG`)."""
    mask_values_of(os.environ)
    logging.config.dictConfig(settings)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def configure_process(part: str, environment: Mapping[str, str] = os.environ) -> None:
    """Configure the log of a process without Django's settings."""
    configure(logging_settings(as_json=wants_json(environment)))
    begin_part(part, environment)


def begin_part(part: str, environment: Mapping[str, str] = os.environ) -> None:
    """Name the part, and log warnings and uncaught errors of this process as lines, in JSON logs."""
    if not wants_json(environment):
        return
    set_part(part)
    logging.captureWarnings(True)
    log = logging.getLogger(part)

    def log_uncaught(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, traceback)
            return
        log.critical("uncaught error: %s", error, exc_info=(kind, error, traceback))

    def log_of_thread(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_type is SystemExit or arguments.exc_value is None:
            return
        name = arguments.thread.name if arguments.thread else "?"
        failure = (arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
        log.error("uncaught error in the thread %s: %s", name, arguments.exc_value, exc_info=failure)

    def log_unraisable(arguments: "sys.UnraisableHookArgs") -> None:
        text = arguments.err_msg or "error ignored in"
        if arguments.exc_value is None:
            log.error("%s %r", text, arguments.object)
            return
        failure = (arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
        log.error("%s %r", text, arguments.object, exc_info=failure)

    sys.excepthook = log_uncaught
    threading.excepthook = log_of_thread
    sys.unraisablehook = log_unraisable
