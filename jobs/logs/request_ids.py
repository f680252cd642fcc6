"""Ids of requests. Client, proxy and log name a request by the same id."""

import re
import secrets

HEADER = "X-Request-ID"
# What proxies and clients send: UUIDs, numbers, and several of them. Nothing else reaches a log line.
_VALID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")


def request_id(sent: str | None) -> str:
    """Return the id that the client sent, or a new one if there is none or it is not valid."""
    if sent is not None and _VALID.fullmatch(sent) and not sent.startswith("ty_"):
        return sent
    return secrets.token_hex(8)
