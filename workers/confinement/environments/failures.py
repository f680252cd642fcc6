"""Names in one sentence why an installation failed, from uv's output."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from jobs.errors import TrainyardError

MAX_DETAIL = 600


class BuildFailed(TrainyardError):
    """The code's packages could not be installed. The text is the cause, for its author."""

    code = "packages"

    @classmethod
    def conflict(cls, detail: str) -> Self:
        """Requirements contradict each other, or a locked version."""
        return cls(f"The packages of the code conflict: {detail}.", code="package_conflict")


class BuildStopped(Exception):
    """The run that waited for the packages has ended."""


_OWN_LINE = re.compile(r"error: |  cause: |hint: ")
"""The lines of uv itself: the output of a build is indented further, and has any words."""
_NO_SOLUTION = "No solution found when resolving"
_NOT_FOUND = re.compile(r"(?P<name>\S+) was not found in the (?:package registry|provided package locations)")
_NO_VERSION = re.compile(
    r"there (?:is|are) no versions? of |only \S+ is available|only the following versions of"
)
_REQUIRED = re.compile(r"you require (?P<requirement>[A-Za-z0-9][\w.\-]*[^\s,]*)")
_ALL_AVAILABLE = re.compile(r"only (?P<version>\S+) is available")
_PYTHON = re.compile(
    r"(?P<name>\S+) (?:requires?|depends? on) Python ?(?P<range>[<>=!~][^\s,]*(?:,[<>=!~][^\s,]*)*)"
)
_PLATFORM = re.compile(
    r"(?P<name>\S+) has no wheels with a matching (?:platform|Python ABI|Python implementation) tag"
)
_NO_WHEEL = re.compile(r"(?P<name>\S+) has no (?:usable )?wheels")
_BUILD = re.compile(r"Failed to (?:build|download and build) `(?P<name>[^`]+)`")
_UNREACHABLE = re.compile(
    r"error sending request|Could not connect|tcp connect error|dns error|operation timed out|Failed to fetch"
)
_STATUS = re.compile(r"HTTP status \w+ error \((?P<status>[^)]+)\)")
_CREDENTIALS = re.compile(r"lack of valid authentication credentials|returned a 403 Forbidden error")
_CERTIFICATE = "invalid peer certificate"
_OWN_AUTHORITY = "CaUsedAsEndEntity"
_CLOSED = re.compile(
    r"(?:directory: |file `)(?P<path>[^`\n]+?)`?(?:\n\s*cause)?: (?:Permission denied|[^\n]*os error 13)"
)
_NO_SPACE = re.compile(r"No space left on device|os error 28\b")
_CONCLUSION = re.compile(r",? we can conclude that .*", re.DOTALL)
_REFERENCE = re.compile(r" ?\(\d+\)")


def cause(
    lines: Sequence[str],
    *,
    wheels_only: str,
    constraints: Iterable[str] = (),
    refused: Sequence[str] = (),
    unreachable: Sequence[str] = (),
) -> BuildFailed:
    """Return the failure that uv's output describes.

    Args:
        lines: its output.
        wheels_only: why only wheels were installed; empty if source distributions were too.
        constraints: the versions that it must not change.
        refused: the hosts that it asked for, and could not reach by rule.
        unreachable: the index's hosts that did not answer.
    """
    text, own_lines = "\n".join(lines), "\n".join(line for line in lines if _OWN_LINE.match(line))
    note = f" Only wheels are installed here: {wheels_only}." if wheels_only else ""
    return (
        _find_machine_failure(text, own_lines)
        or _find_index_failure(own_lines, refused, unreachable)
        or _find_resolution_failure(lines, note, frozenset(constraints))
        or _find_build_failure(own_lines)
        or BuildFailed(f"The packages of the code could not be installed: {_last_error(lines)}{note}")
    )


def _find_machine_failure(text: str, own_lines: str) -> BuildFailed | None:
    if _NO_SPACE.search(text):
        return BuildFailed("The worker's disk was full while packages were installed.", code="no_space")
    if closed := _CLOSED.search(own_lines):
        return BuildFailed(
            f"The installation may not read {closed['path']}. Folders with packages must be open to all "
            "users of the worker, since installations have users of their own.",
            code="package_index",
        )
    return None


def _find_index_failure(text: str, refused: Sequence[str], unreachable: Sequence[str]) -> BuildFailed | None:
    """Return the failure that the index caused: nothing is found at an index that does not answer."""
    if refused:
        return BuildFailed(
            f"The package index refers to the host {refused[0]}, which builds may not reach. An "
            "administrator can add it to TRAINYARD_PACKAGE_HOSTS.",
            code="package_host_refused",
        )
    if _CERTIFICATE in text:
        reason = ": it is that of an authority, which must only sign others" if _OWN_AUTHORITY in text else ""
        return BuildFailed(
            f"The certificate of the package index is not trusted by this worker{reason}.",
            code="package_index",
        )
    if _CREDENTIALS.search(text):
        return BuildFailed(
            "The package index refuses the access: the name and password in its address are missing or "
            "wrong.",
            code="package_index",
        )
    if not unreachable and (answer := _STATUS.search(text)):
        return BuildFailed(
            f"The package index answered with the error {answer['status']}.", code="package_index"
        )
    if unreachable or _UNREACHABLE.search(text):
        host = f" at {unreachable[0]}" if unreachable else ""
        return BuildFailed(f"The package index{host} could not be reached.", code="package_index")
    return None


def _find_resolution_failure(
    lines: Sequence[str], note: str, constraints: frozenset[str]
) -> BuildFailed | None:
    """Return the failure if no set of versions fits."""
    start = next((number for number, line in enumerate(lines) if _NO_SOLUTION in line), None)
    if start is None:
        return None
    explanation = " ".join(line.strip() for line in lines[start + 1 :])
    explanation = explanation.partition(" hint: ")[0].removeprefix("cause: ").strip()
    if python := _PYTHON.search(explanation):
        return BuildFailed(
            f"The package {_readable(python['name'])} needs another version of Python: {python['range']}.",
            code="package_python",
        )
    if platform := _PLATFORM.search(explanation):
        return BuildFailed(
            f"{_readable(platform['name'])} has no wheel for the Python and the system of this worker.{note}",
            code="package_platform",
        )
    return _find_gap(explanation, note) or BuildFailed.conflict(_conflict(explanation, constraints))


def _find_gap(explanation: str, note: str) -> BuildFailed | None:
    """Return the failure if the index has no package or version that fits."""
    if missing := _NOT_FOUND.search(explanation):
        text = f"The package index has no package {missing['name']!r} that fits this worker."
    elif wheel := _NO_WHEEL.search(explanation):
        text = f"The package index has no wheel of {_readable(wheel['name'])} that fits this worker."
    elif " depend" not in explanation and _NO_VERSION.search(explanation):
        required = _REQUIRED.search(explanation)
        requirement = required["requirement"].rstrip(".") if required else "the code"
        name = re.split(r"[<>=!~\[;]", requirement)[0]
        text = f"The package index has no version of {name} that fits {requirement!r}"
        available = _ALL_AVAILABLE.search(explanation)
        text += f": it has only {available['version']}." if available else "."
    else:
        return None
    return BuildFailed(text + note, code="package_not_found")


def _find_build_failure(text: str) -> BuildFailed | None:
    build = _BUILD.search(text)
    if build is None:
        return None
    return BuildFailed(
        f"{_readable(build['name'])} has no wheel for this worker, and could not be built from its source: "
        "the log has the output of its build.",
        code="package_build",
    )


def _readable(name: str) -> str:
    """Return `first 1.0` for `first==1.0`."""
    return name.replace("==", " ")


def _conflict(explanation: str, constraints: frozenset[str]) -> str:
    """Return who asks for which version, without the conclusions of uv."""
    facts = dict.fromkeys(_facts(_REFERENCE.sub("", explanation)))
    return "; ".join(f"this installation has {fact}" if fact in constraints else fact for fact in facts)[
        :MAX_DETAIL
    ]


def _facts(explanation: str) -> Iterator[str]:
    for sentence in re.split(r"\.\s+(?=And|Because|So|Then)|\.$", explanation):
        premises = re.sub(r"^(?:And )?[Bb]ecause ", "", _CONCLUSION.sub("", sentence.strip()))
        for fact in re.split(r",? and (?:because )?", premises):
            if fact and not fact.startswith("we know from"):
                yield fact.replace("you require", "the code asks for")


def _last_error(lines: Sequence[str]) -> str:
    errors = [line for line in lines if line.startswith("error: ")] or [
        line for line in lines if line.strip()
    ]
    text = errors[-1].removeprefix("error: ").strip() if errors else "without a message"
    return f"{text[:MAX_DETAIL].rstrip('.')}."
