"""Cuts the part of a guide that a person would paste: everything up to one of its examples."""

import ast
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

LINES = {"search", "fit"}
"""Calls that end an example that is pasted with the lines that run it."""


def pasted(guide: Path, name: str, nth: int, *, whole: bool, more: str) -> str:
    """Return a guide's lines up to an example.

    Args:
        guide: the guide's file: Python whose texts divide it into cells.
        name: the function, class or variable that ends the example.
        nth: which of its definitions, from 1; the last one if there are fewer.
        whole: whether the next lines that search or train are pasted too.
        more: lines that a person has to add.
    """
    text = guide.read_text(encoding="utf-8")
    body = ast.parse(text).body
    places = [i for i, node in enumerate(body) if name in _bound(node)]
    end = places[min(nth, len(places)) - 1]
    if whole:
        end = next((i for i in range(end, len(body)) if _runs(body[i])), end)
    while end + 1 < len(body) and not _is_text(body[end + 1]):
        end += 1
    lines = text.splitlines(keepends=True)[: body[end].end_lineno]
    return "".join(lines) + (f"\n{more}\n" if more else "")


def as_notebook(text: str) -> str:
    """Return Python whose texts divide it into cells as an exported notebook."""
    cells, lines, begin = [], text.splitlines(keepends=True), 0
    for node in ast.parse(text).body:
        if _is_text(node):
            cells.append("".join(lines[begin : node.lineno - 1]))
            begin = node.end_lineno or node.lineno
    cells.append("".join(lines[begin:]))
    sources: Sequence[str] = ["!pip install keras-tuner -q", *(cell for cell in cells if cell.strip())]
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                    "source": source.splitlines(keepends=True),
                }
                for source in sources
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 0,
        }
    )


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _runs(node: ast.stmt) -> bool:
    """Return whether a statement searches or trains; the bodies of definitions do not run."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return False
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(isinstance(call, ast.Attribute) and call.attr in LINES for call in calls)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
