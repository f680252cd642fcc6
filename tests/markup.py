"""Reads the text of pages, independent of the line breaks in templates."""

import re
from html import unescape
from typing import Any


def text_of(response: Any) -> str:
    """Return the text of a page without its tags; each run of white space is one space."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.content.decode())).split())


def one_line(response: Any) -> str:
    """Return the markup of a page; each run of white space is one space."""
    return squeezed(response.content.decode())


def squeezed(markup: str) -> str:
    """Return markup with one space for each run of white space."""
    return " ".join(markup.split())
