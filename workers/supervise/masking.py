"""Takes secrets out of log lines before anything else happens to them (so before they are cut)."""

import re
from collections.abc import Iterable

MASK = "•••"
SHORTEST = 8
"""Shorter values would mask everyday words."""

_PATTERNS = (
    re.compile(r"(?P<keep>://[^\s:/@]*:)[^\s@/]+(?=@)"),  # the password of a URL
    re.compile(r"(?P<keep>)\bty_[A-Za-z0-9_-]{16,}"),  # our own API tokens
    re.compile(r"(?P<keep>\b(?:authorization|bearer)\b[\"']?\s*[:= ]\s*(?:bearer\s+)?)[^\s\"',]{8,}",
               re.IGNORECASE),
    re.compile(r"(?P<keep>\b\w*(?:password|passwd|secret|api_key|apikey|token)[\"']?\s*[:=]\s*[\"']?)[^\s\"',]{4,}",
               re.IGNORECASE),
)  # fmt: skip


class Masker:
    """Knows the worker's own secrets by value and everyone's by their look."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: a secret that contains another one must not leave its rest behind.
        self._secrets = sorted(
            {secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True
        )

    def mask(self, line: str) -> str:
        """Return `line` without secrets."""
        for secret in self._secrets:
            line = line.replace(secret, MASK)
        for pattern in _PATTERNS:
            line = pattern.sub(rf"\g<keep>{MASK}", line)
        return line
