"""Names the cause of a failed installation in one sentence, from the output of pip or uv."""

import re
from collections.abc import Sequence
from typing import Self

from jobs.errors import TrainyardError

MAX_DETAIL = 600


class BuildFailed(TrainyardError):
    """The packages of code could not be installed. The text is the cause, for its author."""

    code = "packages"

    @classmethod
    def conflict(cls, detail: str) -> Self:
        """Requirements contradict each other, or a locked version."""
        return cls(f"The packages of the code conflict: {detail}.", code="package_conflict")


class BuildStopped(Exception):
    """The run that waited for the packages has ended."""


_NOT_FOUND = re.compile(r"No matching distribution found for (?P<wanted>.+)")
_VERSIONS = re.compile(r"satisfies the requirement (?P<wanted>\S.*?) \(from versions: (?P<versions>.*)\)")
_UV_NOT_FOUND = re.compile(r"Because (?P<wanted>\S+) was not found in the package registry")
_UV_BUILD = re.compile(r"Failed to (?:build|download and build) `(?P<name>[^`]+)`")
_BUILD = re.compile(
    r"Failed (?:building wheel|to build installable wheels|to build) (?:for )?'?(?P<name>[\w.\-]+)"
)
_BUILD_OF = re.compile(r"(?:Preparing metadata|Getting requirements to build wheel).*error")
_COLLECTED = re.compile(r"^(?:Collecting (?P<name>[^\s(]+)|Processing \S*/(?P<file>\w[\w.]*)-\d)")
_PYTHON = re.compile(r"Package '?(?P<name>[\w.\-]+)'? requires a different Python: (?P<detail>.+)")
_PLATFORM = re.compile(r"(?P<file>\S+\.whl) is not a supported wheel on this platform")
_UNREACHABLE = re.compile(
    r"ProxyError|Max retries exceeded|NewConnectionError|Connection refused|Could not fetch URL"
    r"|ConnectTimeout|Temporary failure in name resolution|Failed to fetch|error sending request"
    r"|Could not connect|tcp connect error"
)
_CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED|SSLError|invalid peer certificate")
_UV_CONFLICT = "No solution found when resolving dependencies"
_CONFLICT = "conflicting dependencies"
_CLOSED = re.compile(r"Permission denied: '(?P<path>[^']+)'")
_NO_SPACE = "No space left on device"


def cause(
    lines: Sequence[str],
    *,
    wheels_only: str,
    refused: Sequence[str] = (),
    unreachable: Sequence[str] = (),
) -> BuildFailed:
    """Return the failure that the output of an installer describes.

    Args:
        lines: its output.
        wheels_only: why only wheels were installed; empty if source distributions were too.
        refused: the hosts that the installer asked for, and could not reach by rule.
        unreachable: the hosts of the index that did not answer.
    """
    text = "\n".join(lines)
    note = f" Only wheels are installed here: {wheels_only}." if wheels_only else ""
    if _NO_SPACE in text:
        return BuildFailed("The worker's disk was full while packages were installed.", code="no_space")
    if _CONFLICT in text:
        return BuildFailed.conflict(_conflict(lines))
    if found := _CLOSED.search(text):
        return BuildFailed(
            f"The installation may not read {found['path']}. Folders with packages must be open to all users "
            "of the worker, since installations have users of their own.",
            code="package_index",
        )
    # Before the names that were not found, since nothing is found at an index that does not answer.
    if refused:
        return BuildFailed(
            f"The package index refers to the host {refused[0]}, which builds may not reach. An "
            "administrator can add it to TRAINYARD_PACKAGE_HOSTS.",
            code="package_host_refused",
        )
    if _CERTIFICATE.search(text):
        return BuildFailed(
            "The certificate of the package index is not trusted by this worker.", code="package_index"
        )
    if unreachable or _UNREACHABLE.search(text):
        named = f" at {unreachable[0]}" if unreachable else ""
        return BuildFailed(f"The package index{named} could not be reached.", code="package_index")
    return _of_package(text, lines, note) or BuildFailed(
        f"The packages of the code could not be installed: {_last_error(lines)}{note}"
    )


def _of_package(text: str, lines: Sequence[str], note: str) -> BuildFailed | None:
    """Return the failure that one package caused."""
    if found := _PYTHON.search(text):
        detail = f"{found['name']} needs another version of Python: {found['detail']}"
        return BuildFailed(f"The package {detail}.", code="package_python")
    if found := _PLATFORM.search(text):
        return BuildFailed(f"{found['file']} is not for the system of this worker.", code="package_platform")
    if found := _NOT_FOUND.search(text) or _UV_NOT_FOUND.search(text):
        return BuildFailed(_not_found(found["wanted"], text) + note, code="package_not_found")
    if _UV_CONFLICT in text:
        return _uv_conflict(lines, note)
    if found := _BUILD.search(text) or _UV_BUILD.search(text):
        return _not_built(found["name"])
    if _BUILD_OF.search(text):
        collected = [each["name"] or each["file"] for line in lines if (each := _COLLECTED.search(line))]
        return _not_built(collected[-1] if collected else "a package")
    return None


def _not_built(name: str) -> BuildFailed:
    return BuildFailed(
        f"{name} has no wheel for this worker, and could not be built from its source: the log has the "
        "output of its build.",
        code="package_build",
    )


def _not_found(wanted: str, text: str) -> str:
    versions = next((each["versions"] for each in _VERSIONS.finditer(text)), "none")
    name = re.split(r"[\s<>=!~\[;(]", wanted.strip())[0]
    if versions == "none":
        return f"The package index has no package {name!r} that fits this worker."
    known = versions.split(", ")
    shown = ", ".join(known[-5:])
    return f"The package index has no version of {name} that fits {wanted.strip()!r}: it has {shown}."


def _conflict(lines: Sequence[str]) -> str:
    """Return the lines of pip that name who asks for which version."""
    start = next((n for n, line in enumerate(lines) if "conflict is caused by" in line), None)
    if start is None:
        return (
            next(line for line in lines if _CONFLICT in line).removeprefix("ERROR: ").rstrip(".")[:MAX_DETAIL]
        )
    found = []
    for line in lines[start + 1 :]:
        if not line.startswith("  "):
            break
        found.append(_readable(line.strip()))
    return "; ".join(found)[:MAX_DETAIL]


def _readable(line: str) -> str:
    line = line.replace("The user requested (constraint)", "this installation has")
    return line.replace("The user requested", "the code asks for")


def _uv_conflict(lines: Sequence[str], note: str) -> BuildFailed:
    start = next(n for n, line in enumerate(lines) if _UV_CONFLICT in line)
    printed = " ".join(line.strip(" ╰─▶") for line in lines[start + 1 :]).strip()
    detail = printed.partition(" hint: ")[0].rstrip(".")[:MAX_DETAIL]
    detail = detail.removeprefix("cause: ")
    is_missing = "there is no version of" in detail or "has no wheels" in detail
    if is_missing and " depends on " not in detail:
        return BuildFailed(f"No version of a package fits: {detail}.{note}", code="package_not_found")
    return BuildFailed.conflict(detail)


def _last_error(lines: Sequence[str]) -> str:
    errors = [line for line in lines if line.lower().startswith(("error", "× "))] or [
        line for line in lines if line.strip()
    ]
    text = (
        errors[-1].removeprefix("ERROR: ").removeprefix("error: ").strip() if errors else "without a message"
    )
    return (text[:MAX_DETAIL].rstrip(".")) + "."
