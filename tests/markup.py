"""Reads a page's text, independent of the line breaks in templates."""

import re
from html import unescape
from typing import Any


def text_of(response: Any) -> str:
    """Return a page's text without tags; consecutive white space becomes one space."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.content.decode())).split())


def one_line(response: Any) -> str:
    """Return a page's markup; consecutive white space becomes one space."""
    return squeezed(response.content.decode())


def squeezed(markup: str) -> str:
    """Return markup with one space for each run of white space."""
    return " ".join(markup.split())
