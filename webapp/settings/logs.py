"""Configures logging through structlog: text lines locally, JSON in production, with masked secrets."""

import logging.config
import re
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

SECRET_WORDS = ("authorization", "cookie", "password", "secret", "token")
MASK = "•••"
# Of Django, for hosts that are not allowed, forms with too many fields and the like.
REFUSALS = "django.security"
MAX_VALUE = 2000
# One-time links and API tokens, wherever a line contains them: in a path, a message or a traceback.
SECRETS = re.compile(r"(?P<kept>/login/|\bty_)[\w-]+")


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


class Masked:
    """Renders a line, and masks the secrets in it.

    Args:
        render: renders the whole line, tracebacks included.
    """

    def __init__(self, render: structlog.typing.Processor) -> None:
        self._render = render

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> str:
        """Return the line without secrets."""
        return SECRETS.sub(rf"\g<kept>{MASK}", str(self._render(logger, method, event)))


SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    without_secrets,
    shorten_values,
]


def logging_settings(*, as_json: bool) -> dict[str, Any]:
    """Return the standard library's configuration; structlog formats all records."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        # Plain tracebacks: rich ones print all local variables, which is slow and may print secrets.
        else structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    )
    processors: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta
    ]
    if as_json:
        processors.append(structlog.processors.format_exc_info)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structlog": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [*processors, Masked(renderer)],
                "foreign_pre_chain": SHARED,
            }
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "structlog"}},
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
