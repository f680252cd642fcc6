"""Masks secrets in log lines. Runs before lines are cut, so that no part of a secret remains."""

import re
from collections.abc import Iterable

MASK = "•••"
# Shorter values could mask ordinary words.
MIN_SECRET_LENGTH = 8

_PATTERNS = (
    re.compile(r"(?P<keep>://[^\s:/@]*:)[^\s@/]+(?=@)"),  # the password of a URL
    re.compile(r"(?P<keep>)\bty_[A-Za-z0-9_-]{16,}"),  # API tokens of this installation
    re.compile(r"(?P<keep>\b(?:authorization|bearer)\b[\"']?\s*[:= ]\s*(?:bearer\s+)?)[^\s\"',]{8,}",
               re.IGNORECASE),
    re.compile(r"(?P<keep>\b\w*(?:password|passwd|secret|api_key|apikey|token)[\"']?\s*[:=]\s*[\"']?)[^\s\"',]{4,}",
               re.IGNORECASE),
)  # fmt: skip


class SecretMasker:
    """Masks the worker's own secrets by value, and other secrets by pattern."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: masking a contained secret first would leave the rest of the longer one.
        self._secrets = sorted(
            {secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH}, key=len, reverse=True
        )

    def mask(self, line: str) -> str:
        """Return a line with each secret replaced."""
        for secret in self._secrets:
            line = line.replace(secret, MASK)
        for pattern in _PATTERNS:
            line = pattern.sub(rf"\g<keep>{MASK}", line)
        return line
