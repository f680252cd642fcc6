"""Writes one line a minute about a database or broker that is away, and counts the others.

Each request, poll and renewal fails while it is away: thousands of lines would have the same content, and the
rotation of log files would drop the ones from its beginning.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Literal

Service = Literal["database", "broker"]

PAUSE_SECONDS = 60.0
_LONGEST_CHAIN = 10
# By the package and name of the class, so that this module imports neither drivers nor Django.
_ERRORS: dict[tuple[str, str], Service] = {
    **dict.fromkeys(
        [
            ("django", "OperationalError"),
            ("django", "InterfaceError"),
            ("psycopg", "OperationalError"),
            ("psycopg", "InterfaceError"),
            ("psycopg_pool", "PoolTimeout"),
            ("sqlite3", "OperationalError"),
            ("workers", "DatabaseUnavailable"),
        ],
        "database",
    ),
    **dict.fromkeys(
        [
            ("redis", "ConnectionError"),
            ("redis", "TimeoutError"),
            ("redis", "BusyLoadingError"),
            ("kombu", "OperationalError"),
        ],
        "broker",
    ),
}
# These have the class of an outage, but the database answers: each of them is a line.
_ANSWERED = ("no such", "has no column", "syntax error", "deadlock", "does not exist", "malformed")

RESPONSES = "django.request"
POOL = "psycopg.pool"
"""The pool of connections logs each failed try, some without an error."""
noted: ContextVar[Service | None] = ContextVar("noted", default=None)
"""The service whose outage was logged while the present request was answered."""


def missing_service(error: BaseException | None) -> Service | None:
    """Return the service whose outage is the cause of an error; None for other errors."""
    for cause in _causes(error):
        text = str(cause).lower()
        for kind in type(cause).__mro__:
            service = _ERRORS.get((kind.__module__.partition(".")[0], kind.__name__))
            if service is not None and not any(word in text for word in _ANSWERED):
                return service
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


class OutageFilter(logging.Filter):
    """Lets one record for each service pass in `pause` seconds. It has the number of those before it.

    A record belongs to an outage if its exception, or one of its arguments, is an error of that kind, or if
    it has the field `outage`.
    """

    def __init__(self, pause: float = PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._pause, self._clock = pause, clock
        self._lock = threading.Lock()
        self._logged: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        service = _service_of(record)
        if service is None and record.name == POOL:
            service = "database"
        # Django's line about a response of 503 or 500 follows the one about its cause.
        if service is None and record.name == RESPONSES:
            service = noted.get()
        # The end of a process always has a line.
        if service is None or record.levelno >= logging.CRITICAL:
            return True
        noted.set(service)
        now = self._clock()
        with self._lock:
            before = self._logged.get(service)
            if before is not None and now - before < self._pause:
                self._suppressed[service] = self._suppressed.get(service, 0) + 1
                return False
            self._logged[service] = now
            suppressed = self._suppressed.pop(service, 0)
        if suppressed:
            _add_field(record, "suppressed", suppressed)
        return True


def _service_of(record: logging.LogRecord) -> Service | None:
    for error in _errors_of(record):
        if (service := missing_service(error)) is not None:
            return service
    fields = record.msg if isinstance(record.msg, dict) else record.__dict__
    return fields.get("outage")


def _errors_of(record: logging.LogRecord) -> Iterator[BaseException]:
    values: list[Any] = [*record.args] if isinstance(record.args, tuple) else []
    if record.exc_info:
        values.append(record.exc_info[1])
    # structlog passes its fields as the message.
    if isinstance(record.msg, dict):
        values += record.msg.values()
    for value in values:
        if isinstance(value, BaseException):
            yield value
        elif isinstance(value, tuple) and len(value) == 3 and isinstance(value[1], BaseException):
            yield value[1]


def _add_field(record: logging.LogRecord, name: str, value: object) -> None:
    if isinstance(record.msg, dict):
        record.msg[name] = value
    else:
        setattr(record, name, value)
