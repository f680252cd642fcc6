"""Checks the requirements of user code: the packages that a worker installs for it."""

import hashlib
import json
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

MAX_REQUIREMENTS = 200


class BadRequirement(ValueError):
    """A line is no requirement that a worker can install. The text names the line and the reason."""


def parse_requirements(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements in one form, sorted and each once, so that equal sets are equal.

    Raises:
        BadRequirement: a line is none, or has options or an address.
    """
    return tuple(sorted({str(parse_requirement(line)) for line in lines}))


def parse_requirement(line: str) -> Requirement:
    """Return a requirement, with its name in one form.

    Raises:
        BadRequirement: see `parse_requirements`.
    """
    text = line.strip()
    if text.startswith("-"):
        raise _bad(text, "options of the installer are not possible here, only packages with versions")
    if " --" in text:
        raise _bad(text, 'options of a requirement, such as hashes, are not possible; pin it by "=="')
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise _bad(text, 'write a package and its versions, such as "einops>=0.8,<1"') from None
    if requirement.url is not None:
        raise _bad(text, "packages come only from the package index of the installation, not from addresses")
    requirement.name = canonicalize_name(requirement.name)
    return requirement


def digest_of(requirements: Iterable[str]) -> str:
    """Compute a digest for a set of requirements. The lines' order does not matter.

    Lines that a worker could not install count as they are.
    """
    forms = set()
    for line in requirements:
        try:
            forms.add(str(parse_requirement(line)))
        except BadRequirement:
            forms.add(line.strip())
    return hashlib.sha256(json.dumps(sorted(forms)).encode()).hexdigest()


def python_problem(specifiers: str | None, version: str) -> str | None:
    """Return why code cannot run with a Python version, or None if it can.

    Args:
        specifiers: the versions that it asks for, such as `>=3.11`.
        version: a worker's version.
    """
    if not specifiers:
        return None
    try:
        allowed = SpecifierSet(specifiers)
    except InvalidSpecifier:
        return f"The code asks for Python {specifiers!r}, which names no versions."
    if version in allowed:
        return None
    return f"The code asks for Python {specifiers}, and this worker has Python {version}."


def _bad(text: str, reason: str) -> BadRequirement:
    excerpt = text if len(text) <= 100 else f"{text[:99]}…"
    return BadRequirement(f"The requirement {excerpt!r} cannot be installed: {reason}.")
