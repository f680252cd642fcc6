"""Parses JSON text from requests, strictly."""

import json
from typing import Any, NoReturn

from webapp.http_errors import Malformed


def read_json(raw: bytes) -> Any:
    """Parse JSON text.

    Raises:
        Malformed: it is not JSON, or holds NaN, infinity, a NUL or half a surrogate pair.
    """
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
        # Half a surrogate pair (`"\ud800"`) parses, but cannot be encoded, so no database can store it.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Malformed(f"The body is not JSON: {error}") from error
    # PostgreSQL stores no NUL in text or JSON.
    if b"\\u0000" in raw:
        raise Malformed("The body holds a NUL character.")
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
