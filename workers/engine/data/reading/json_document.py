"""Writes a JSON document with a table as JSON Lines: an array of objects, or an object of columns."""

import contextlib
import json
import mmap
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.text_headers import has_header
from workers.engine.data.expansion import CHUNK_BYTES, check_expanded
from workers.engine.data.reading.header import name_columns
from workers.engine.errors import BadData, DamagedFile

BYTES_PER_VALUE = 64
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A text, which may have brackets, or a bracket outside of texts."""
BETWEEN = re.compile(rb"[\s,]*")
BOM = b"\xef\xbb\xbf"
FORMS = (
    'an array of objects ([{"a": 1}, {"a": 2}]), an object on each line, or an object with a list for each '
    'column ({"a": [1, 2]})'
)


def write_lines(path: Path, target: Path, limits: FileLimits) -> tuple[str, ...] | None:
    """Write a document's rows as objects, one on each line.

    Args:
        path: the document.
        target: the new file.
        limits: how large it may become.

    Returns:
        Sentences on how it was understood; None if the file already has an object on each line.

    Raises:
        BadData: it has no table, or is too large.
        DamagedFile: it is not JSON.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        begin = len(BOM) if content[: len(BOM)] == BOM else 0
        start = content[begin : begin + CHUNK_BYTES].lstrip()
        if start.startswith(b"["):
            place = content.find(b"[", begin) + 1
            if content[place : place + CHUNK_BYTES].lstrip().startswith(b"{"):
                _write(target, _elements(path.name, content, place), limits)
                return ()
            document = _loaded(path, limits, are_lines=_has_lines_of_arrays(start))
            _write(target, map(orjson.dumps, _of_arrays(document, path.name)), limits)
            return ()
        if not start.startswith(b"{") or _has_lines(start):
            return None
        # Views of the content may not outlive it.
        with contextlib.closing(_elements(path.name, content, begin)) as objects:
            first, second = next(objects, b""), next(objects, None)
        if second is not None:
            _write(target, _elements(path.name, content, begin), limits)
            return ()
    document = _loaded(path, limits)
    if _is_row(document):
        _write(target, [first], limits)
        return ()
    rows, about = _of_object(document, path.name)
    _write(target, map(orjson.dumps, rows), limits)
    return about


def _has_lines(start: bytes) -> bool:
    """Return whether the first line is an object, and another one follows."""
    first, _, rest = start.partition(b"\n")
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        # The reader of lines reports a damaged one; a larger object continues on the next line.
        return rest.lstrip().startswith(b"{") and not first.rstrip().endswith((b"{", b"[", b",", b":"))
    return bool(rest.strip())


def _has_lines_of_arrays(start: bytes) -> bool:
    """Return whether each line has the values of a row as an array."""
    first, _, rest = start.partition(b"\n")
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    return rest.lstrip().startswith(b"[")


def _elements(name: str, content: mmap.mmap, begin: int) -> Generator[bytes]:
    """Yield the objects that follow each other, with commas or without, each as one line."""
    depth, start, end = 0, begin, begin
    for token in TOKEN.finditer(content, begin):
        sign = token.group()[:1]
        if sign == b'"':
            if depth == 0 or not token.group().endswith(b'"'):
                raise _damaged(name, "a text is at a place for an object, or has no end")
        elif sign in b"{[":
            if depth == 0:
                if sign != b"{" or BETWEEN.fullmatch(content, end, token.start()) is None:
                    raise BadData(
                        f"{name} is JSON with other values than objects in an array; a table is {FORMS}"
                    )
                start = token.start()
            depth += 1
        else:
            depth -= 1
            if depth < 0:
                return
            if depth == 0:
                end = token.end()
                yield content[start:end].replace(b"\n", b" ").replace(b"\r", b" ")
    if depth:
        raise _damaged(name, "it ends within an object")


def _write(target: Path, lines: Iterable[bytes], limits: FileLimits) -> None:
    size = 0
    with target.open("wb") as file:
        for line in lines:
            size += len(line) + 1
            check_expanded(target.name, size, limits)
            file.write(line + b"\n")


def _loaded(path: Path, limits: FileLimits, *, are_lines: bool = False) -> Any:
    """Return a whole document, or the array of its lines, whose size in memory is checked before."""
    body = path.read_bytes().removeprefix(BOM)
    values = body.count(b",") + body.count(b"{") + body.count(b"[") + 1
    check_expanded(path.name, values * BYTES_PER_VALUE, limits)
    try:
        return [loads(line) for line in body.splitlines() if line.strip()] if are_lines else loads(body)
    except (ValueError, RecursionError) as error:
        raise _damaged(path.name, str(error)) from error


def loads(body: bytes) -> Any:
    """Return the value of a JSON text, also of one with NaN and Infinity, which Python writes.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in body and b"Infinity" not in body:
            raise
        try:
            # An infinite number is missing too: no other format of JSON has one.
            return json.loads(body.decode(), parse_constant=lambda _: None)
        except (UnicodeDecodeError, RecursionError):
            raise error from None


def _damaged(name: str, reason: str) -> DamagedFile:
    return DamagedFile(f"this file is damaged: {name} is not readable JSON: {reason}; a table is {FORMS}")


def _is_row(document: Any) -> bool:
    """Return whether an object is itself a row: it has single values."""
    return bool(document) and not any(isinstance(value, list | dict) for value in document.values())


def _of_arrays(document: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an array of equally long arrays."""
    if not document or not all(isinstance(row, list) and row for row in document):
        raise BadData(f"{name} is a JSON array without objects; a table is {FORMS}")
    if len({len(row) for row in document}) > 1:
        raise BadData(f"{name} is a JSON array whose arrays differ in length; a table is {FORMS}")
    names = [f"column_{number}" for number in range(1, len(document[0]) + 1)]
    texts = [["" if field is None else str(field) for field in row] for row in document[:50]]
    if all(isinstance(field, str) for field in document[0]) and has_header(texts):
        names, document = name_columns([field.strip() for field in document[0]]).names, document[1:]
    return (dict(zip(names, row, strict=True)) for row in document)


def _of_object(document: Mapping[str, Any], name: str) -> tuple[Iterator[dict[str, Any]], tuple[str, ...]]:
    """Return the rows of an object, and sentences on how it was understood."""
    if {"columns", "data"} <= document.keys() and _is_list_of(document["data"], list):
        names = name_columns([str(label).strip() for label in document["columns"]]).names
        if all(len(row) == len(names) for row in document["data"]):
            return (dict(zip(names, row, strict=True)) for row in document["data"]), ()
    if all(isinstance(values, list) for values in document.values()):
        if len({len(values) for values in document.values()}) == 1 and not _is_list_of(
            next(iter(document.values())), dict
        ):
            return _of_columns(document), ()
    elif all(isinstance(values, dict) for values in document.values()):
        return _of_labels(document)
    tables = [key for key, values in document.items() if _is_list_of(values, dict)]
    if len(tables) == 1:
        others = ", ".join(repr(key) for key in document if key != tables[0])
        about = f"The rows are the objects in {tables[0]!r}" + (
            f"; {others} was not read." if others else "."
        )
        return iter(document[tables[0]]), (about,)
    keys = ", ".join(map(repr, list(document)[:10]))
    raise BadData(f"{name} is a JSON object that is no table: it has {keys[:300]}. A table is {FORMS}")


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(value, kind) for value in values)


def _of_columns(document: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for row in zip(*document.values(), strict=True):
        yield dict(zip(document, row, strict=True))


def _of_labels(document: Mapping[str, dict[str, Any]]) -> tuple[Iterator[dict[str, Any]], tuple[str, ...]]:
    """Return the rows of an object of objects: columns with labels of rows, as of pandas, or the reverse."""
    inner = list(dict.fromkeys(label for values in document.values() for label in values))
    by_column = _has_columns(document, inner)
    labels, names = (inner, list(document)) if by_column else (list(document), inner)
    where = "inner" if by_column else "outer"
    about = f"The rows of the JSON object are its {where} keys, such as {labels[0]!r}."
    index = [] if labels == [str(number) for number in range(len(labels))] else labels

    def rows() -> Iterator[dict[str, Any]]:
        for place, label in enumerate(labels):
            values = {name: document[name].get(label) for name in names} if by_column else document[label]
            yield {"": index[place], **values} if index else values

    return rows(), (about,)


def _has_columns(document: Mapping[str, dict[str, Any]], inner: list[str]) -> bool:
    """Return whether the outer keys are columns: the others number the rows, or each column has one type."""
    if _are_numbers(inner) or _are_numbers(document):
        return _are_numbers(inner)
    inside = any(_is_mixed(values.values()) for values in document.values())
    across = any(_is_mixed(values.get(label) for values in document.values()) for label in inner)
    return across if inside != across else len(document) <= len(inner)


def _is_mixed(values: Iterable[Any]) -> bool:
    return len({isinstance(value, str) for value in values if value is not None}) > 1


def _are_numbers(labels: Iterable[str]) -> bool:
    return all(label.isdigit() for label in labels)
