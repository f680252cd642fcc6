"""Counts the exchanges between devices in a compiled program's text."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from jobs.spec.plan.compiled_step import Collective
from jobs.spec.templates.layers import bytes_of_type

KINDS = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast",
)  # fmt: skip
_COMMENT = re.compile(r"/\*.*?\*/")
_COMPUTATION = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)\s.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT\s+)?%?[\w.\-]+ = (.+?)\s([a-z][a-z0-9\-]*)\((.*)$")
_SHAPE = re.compile(r"\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?:\s*\{"n":\s*"(\d+)"')
_TYPES = {"pred": "bool", "s": "int", "u": "uint", "f": "float", "bf": "bfloat", "c": "complex"}


@dataclass
class _Computation:
    """The exchanges in one computation of a program, and its calls of others, with their counts."""

    exchanges: list[tuple[str, int]] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)
    has_loops: bool = False


def collectives_in(text: str) -> tuple[tuple[Collective, ...], bool]:
    """Count the collectives of one call of a program.

    Args:
        text: the compiled program, as XLA prints it.

    Returns:
        The kinds with their bytes on one device, the largest first; and whether the program has loops. A loop
        of unknown length counts once.
    """
    computations, entry = _parse(text)
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    has_loops = False
    for name, times in _executed(computations, entry):
        has_loops |= computations[name].has_loops
        for kind, size in computations[name].exchanges:
            counts[kind] += times
            sizes[kind] += times * size
    listed = (Collective(kind=kind, count=counts[kind], bytes=size) for kind, size in sizes.most_common())
    return tuple(listed), has_loops


def _parse(text: str) -> tuple[dict[str, _Computation], str]:
    """Return a program's computations by name, and the name of the one that is called."""
    computations: dict[str, _Computation] = {}
    entry, current = "", _Computation()
    # A comment such as /*index=5*/ is part of the result of a combined collective.
    for line in _COMMENT.sub("", text).splitlines():
        if (begins := _COMPUTATION.match(line)) is not None and " = " not in line.split("{")[0]:
            current = computations.setdefault(begins[2], _Computation())
            entry = begins[2] if begins[1] else entry
        elif (instruction := _INSTRUCTION.match(line)) is not None:
            _add(current, *instruction.groups())
    return computations, entry


def _add(computation: _Computation, result: str, operation: str, rest: str) -> None:
    """Add an instruction to its computation."""
    kind = operation.removesuffix("-start")
    if kind in KINDS:
        computation.exchanges.append((kind, _bytes_of(result, is_begun=operation.endswith("-start"))))
        return
    called = [*_CALLED.findall(rest)]
    for branches in _BRANCHES.findall(rest):
        called += [name.strip().lstrip("%") for name in branches.split(",")]
    times = 1
    if operation == "while":
        computation.has_loops = True
        trips = _TRIPS.search(rest)
        times = int(trips[1]) if trips is not None else 1
    computation.calls += [(name, times) for name in called]


def _bytes_of(result: str, *, is_begun: bool) -> int:
    """Return the bytes of an instruction's result; the begin of an exchange returns its operands too."""
    sizes = [
        math.prod(int(length) for length in lengths.split(",") if length) * bytes_of_type(_type_of(name))
        for name, lengths in _SHAPE.findall(result)
    ]
    return sum(sizes[len(sizes) // 2 :]) if is_begun and len(sizes) > 1 else sum(sizes)


def _type_of(name: str) -> str:
    """Return the type's name with its bits: XLA calls float32 `f32`, bool `pred`, float8 `f8e4m3fn`."""
    letters = re.match(r"[a-z]+", name)
    prefix = letters[0] if letters is not None else name
    return name.replace(prefix, _TYPES.get(prefix, prefix), 1)


def _executed(computations: dict[str, _Computation], entry: str) -> Iterator[tuple[str, int]]:
    """Yield the computations that a program calls, with how often each call runs."""
    waiting = [(entry, 1)] if entry in computations else []
    while waiting:
        name, times = waiting.pop()
        yield name, times
        waiting += [(called, times * n) for called, n in computations[name].calls if called in computations]
