"""Masks secrets in log lines, wherever a line contains them: in a path, a message or a traceback."""

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

MASK = "•••"
# Shorter values are no secrets, and would be masked inside of ordinary words.
SHORTEST = 8
_NAMES = ("SECRET", "TOKEN", "PASSWORD", "PASSWD", "_KEY")
_NO_SECRETS = ("_FILE", "_SECONDS", "_FOLDER")

_PATTERNS = (
    # One-time links and API tokens.
    re.compile(r"(?P<kept>/login/|\bty_)[\w-]+"),
    # Passwords in addresses: postgres://user:password@host, redis://:password@host.
    re.compile(r"(?P<kept>\b[a-zA-Z][\w+.-]*://[^\s/:@\"']*:)[^\s/\"'@]+(?=@)"),
    re.compile(r"(?P<kept>\b(?:[Bb]earer|[Bb]asic) )[\w.~+/=-]{6,}"),
    # Parameters of addresses, among them the signatures of object storage, and options of drivers.
    re.compile(
        r"(?P<kept>\b(?:password|passwd|token|secret|api_?key|access_key|signature|x-amz-signature"
        r"|x-amz-credential|x-amz-security-token)=)[^\s&\"']+",
        re.IGNORECASE,
    ),
)
_PASSWORD_IN_URL = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secret values of environment variables, and the passwords in their addresses."""
    values = set[str]()
    for name, value in environment.items():
        upper = name.upper()
        if any(word in upper for word in _NAMES) and not upper.endswith(_NO_SECRETS):
            values.add(value)
        if match := _PASSWORD_IN_URL.search(value):
            values |= {match[1], unquote(match[1])}
    # The longest first: one may contain another.
    return tuple(sorted((value for value in values if len(value) >= SHORTEST), key=len, reverse=True))


_values: tuple[str, ...] = ()


def mask_values_of(environment: Mapping[str, str]) -> None:
    """Let `mask` know the secrets of this process."""
    global _values
    _values = secrets_of(environment)


def mask(text: str) -> str:
    """Return a text without secrets."""
    for value in _values:
        if value in text:
            text = text.replace(value, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<kept>{MASK}", text)
    return text


mask_values_of(os.environ)
