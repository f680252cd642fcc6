"""Parses JSON and YAML into plain values, with limits on size and depth."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

import yaml

from jobs.spec.formats.reading import FormatError, format_error
from jobs.spec.problems import Problem, escaped

MAX_CHARACTERS = 100_000
"""The largest published search spaces have a tenth of this."""
MAX_NODES = 20_000
"""The most values after YAML aliases are expanded."""
MAX_DEPTH = 60
MAX_BITS = 10_000
"""Python formats no integers with more than 4,300 digits, which YAML may write in other bases."""


def parse(text: str) -> Any:
    """Parse JSON or YAML.

    Returns:
        A JSON value: objects, lists, strings, numbers, booleans and null.

    Raises:
        FormatError: the text is neither JSON nor YAML, or exceeds a limit.
    """
    if len(text) > MAX_CHARACTERS:
        raise format_error("", f"the text has {len(text)} characters; the limit is {MAX_CHARACTERS}")
    if not text.strip():
        raise format_error("", "the text is empty")
    try:
        return _json(text) if text.lstrip()[0] in "{[" else _yaml(text)
    except RecursionError:
        raise format_error("", f"nested deeper than {MAX_DEPTH} levels") from None


def _json(text: str) -> Any:
    try:
        # By default, Python accepts NaN, Infinity and repeated keys, of which it keeps the last.
        value = json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise format_error("", f"not valid JSON: line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise format_error("", f"not valid JSON: {error}") from None
    _check(value, "", 0)
    return value


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _unique_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise ValueError(f"{key!r} is used twice in one object")
        entries[key] = value
    return entries


class _Loader(yaml.SafeLoader):
    """The safe loader, except that 1e-4 is a number."""


# A copy, because add_implicit_resolver would change the lists of all loaders.
_Loader.yaml_implicit_resolvers = {
    first: list(resolvers) for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# PyYAML follows YAML 1.1, where a float needs a dot, and reads 1e-4 as a string. In YAML 1.2 it is a number.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


_CONSTRUCTOR_ERRORS = (ValueError, OverflowError, LookupError, AttributeError, TypeError)
"""Raised by PyYAML's constructors when a value does not match its tag, such as `!!bool x`."""


def _yaml(text: str) -> Any:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise format_error("", "the text is empty")
        # Before the values are constructed: a few aliases of aliases can expand to billions of values.
        _count_nodes(node, "", {}, ())
        value = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise format_error("", f"not valid YAML: {line}{error.problem}") from None
    except yaml.YAMLError as error:
        raise format_error("", f"not valid YAML: {str(error).splitlines()[0]}") from None
    except _CONSTRUCTOR_ERRORS as error:
        raise format_error("", f"not valid YAML: a value does not match its tag: {error}"[:300]) from None
    _check(value, "", 0)
    return value


def _count_nodes(node: yaml.Node, pointer: str, sizes: dict[int, int], above: tuple[int, ...]) -> int:
    """Count a node's values with all aliases expanded. Each node is visited once."""
    if id(node) in above:
        raise format_error(pointer, "an alias refers to the value that contains it")
    if id(node) in sizes:
        return sizes[id(node)]
    if len(above) > MAX_DEPTH:
        raise format_error(pointer, f"nested deeper than {MAX_DEPTH} levels")
    size = 1
    for name, child in _children(node, pointer):
        size += _count_nodes(child, f"{pointer}/{escaped(name)}", sizes, (*above, id(node)))
        if size > MAX_NODES:
            raise format_error(pointer, f"more than {MAX_NODES} values after expanding aliases")
    sizes[id(node)] = size
    return size


def _children(node: yaml.Node, pointer: str) -> Iterable[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.SequenceNode):
        return [(str(i), child) for i, child in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return []
    names = [str(key.value) for key, _ in node.value]
    # PyYAML keeps the last of several equal keys, so a setting would be lost silently.
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise FormatError(
            [Problem(f"{pointer}/{escaped(name)}", "the key is used twice") for name in repeated]
        )
    return [(name, child) for name, (_, child) in zip(names, node.value, strict=True)]


def _check(value: Any, pointer: str, depth: int) -> None:
    """Check that a value has only JSON's types and no invalid characters."""
    if depth > MAX_DEPTH:
        raise format_error(pointer, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str) or not _is_valid_text(key):
                raise format_error(pointer, f"{key!r} is not a valid key: keys are strings without NUL")
            _check(child, f"{pointer}/{escaped(key)}", depth + 1)
    elif isinstance(value, str) and not _is_valid_text(value):
        raise format_error(pointer, "the string contains NUL or half of a surrogate pair")
    elif isinstance(value, list):
        for i, child in enumerate(value):
            _check(child, f"{pointer}/{i}", depth + 1)
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise format_error(pointer, "the number has too many digits")
    elif not isinstance(value, str | int | float | None):
        raise format_error(
            pointer, f"{type(value).__name__} values are not supported: write the value as a string in quotes"
        )


def _is_valid_text(text: str) -> bool:
    # PostgreSQL stores no NUL in JSON, and UTF-8 cannot encode half of a surrogate pair.
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
