"""Reads the code of a Jupyter notebook."""

import json
from typing import Any

from workers.system.archives import BadArchive

NOTEBOOK = ".ipynb"
OTHER_LANGUAGES = (
    "%%bash",
    "%%sh",
    "%%script",
    "%%html",
    "%%javascript",
    "%%js",
    "%%latex",
    "%%writefile",
    "%%sql",
)
"""Magics after which a cell is no Python."""


def code_of_notebook(path: str, body: bytes) -> bytes:
    """Return the cells of code in a notebook, one after the other.

    Raises:
        BadArchive: it is no notebook, or has no code.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadArchive(f"{path!r} is no notebook: {error}; save it again, or as a .py file") from error
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise BadArchive(f"{path!r} is no notebook of nbformat 4: it has no cells; save it as a .py file")
    texts = [text for cell in cells if (text := _code(cell)).strip()]
    if not texts:
        raise BadArchive(f"{path!r} has no cell of code in Python")
    return "".join(f"{text.rstrip()}\n\n\n" for text in texts).rstrip().encode() + b"\n"


def is_notebook(body: bytes) -> bool:
    """Return whether a text is a notebook's JSON, as it is copied from an editor of text."""
    if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "nbformat" in document and isinstance(document.get("cells"), list)


def _code(cell: Any) -> str:
    """Return the text in a cell of code; empty for others."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return ""
    source = cell.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return "" if text.lstrip().startswith(OTHER_LANGUAGES) else text
