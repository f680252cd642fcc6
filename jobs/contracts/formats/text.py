"""Turns JSON or YAML text into plain values; what is too large, too deep or too clever is refused."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

import yaml

from jobs.contracts.formats.reading import Refused, refusal
from jobs.contracts.problems import Problem, escaped

LONGEST = 100_000
"""Characters. The largest search spaces in public are a tenth of this."""
MOST_NODES = 20_000
"""Values in a text once its YAML aliases are written out."""
DEEPEST = 60


def parse(text: str) -> Any:
    """Return the value of JSON or YAML text: objects, lists, texts, numbers, true/false and null.

    Raises:
        Refused: it is neither, or more than is read here.
    """
    if len(text) > LONGEST:
        raise refusal("", f"it has {len(text)} characters; {LONGEST} are read at most")
    if not text.strip():
        raise refusal("", "it is empty")
    try:
        return _json(text) if text.lstrip()[0] in "{[" else _yaml(text)
    except RecursionError:
        raise refusal("", f"it is nested deeper than {DEEPEST} levels") from None


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise refusal("", f"it is not JSON: line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise refusal("", f"it is not JSON: {error}") from None
    _check(value, "", 0)
    return value


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} is used twice in one object")
        found[key] = value
    return found


class _Loader(yaml.SafeLoader):
    """YAML's safe types, with numbers such as 1e-4 read as numbers: YAML 1.2 does, PyYAML does not."""


# a copy first: add_implicit_resolver would change the lists of every loader
_Loader.yaml_implicit_resolvers = {
    first: list(resolvers) for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


MISTAGGED = (ValueError, OverflowError, LookupError, AttributeError, TypeError)
"""What PyYAML's constructors raise for a value that is not what its tag says: `!!timestamp x`, `!!bool x`."""


def _yaml(text: str) -> Any:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise refusal("", "it is empty")
        _weigh(node, "", {}, ())
        value = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise refusal("", f"it is not YAML: {line}{error.problem}") from None
    except yaml.YAMLError as error:
        raise refusal("", f"it is not YAML: {str(error).splitlines()[0]}") from None
    except MISTAGGED as error:
        raise refusal("", f"it holds a value that is not what it claims to be: {error}"[:300]) from None
    _check(value, "", 0)
    return value


def _weigh(node: yaml.Node, pointer: str, known: dict[int, int], above: tuple[int, ...]) -> int:
    """Count the values that a node stands for with its aliases written out, each node visited once."""
    if id(node) in above:
        raise refusal(pointer, "it contains itself")
    if id(node) in known:
        return known[id(node)]
    if len(above) > DEEPEST:
        raise refusal(pointer, f"it is nested deeper than {DEEPEST} levels")
    size = 1
    for name, child in _children(node, pointer):
        size += _weigh(child, f"{pointer}/{escaped(name)}", known, (*above, id(node)))
        if size > MOST_NODES:
            raise refusal(pointer, f"it stands for more than {MOST_NODES} values")
    known[id(node)] = size
    return size


def _children(node: yaml.Node, pointer: str) -> Iterable[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.SequenceNode):
        return [(str(i), child) for i, child in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return []
    names = [str(key.value) for key, _ in node.value]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise Refused([Problem(f"{pointer}/{escaped(name)}", "it is used twice") for name in twice])
    return [(name, child) for name, (_, child) in zip(names, node.value, strict=True)]


def _check(value: Any, pointer: str, depth: int) -> None:
    """Check that nothing but JSON's kinds came out, within reason."""
    if depth > DEEPEST:
        raise refusal(pointer, f"it is nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str) or not _is_clean(key):
                raise refusal(pointer, f"{key!r} cannot be a key")
            _check(child, f"{pointer}/{escaped(key)}", depth + 1)
    elif isinstance(value, str) and not _is_clean(value):
        raise refusal(pointer, "it holds characters that no text has: NUL or half a surrogate pair")
    elif isinstance(value, list):
        for i, child in enumerate(value):
            _check(child, f"{pointer}/{i}", depth + 1)
    elif not isinstance(value, str | int | float | None):
        raise refusal(pointer, f"{type(value).__name__} values are not read: write it as text in quotes")


def _is_clean(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
