r"""Matches users' regular expressions in time linear in the text's length.

Python's `re` can take exponential time, so one pattern could stop a web process or a worker. A pattern is
accepted if `re`, which Keras uses, and RE2 both accept it and mean the same by it, for names in ASCII without
line breaks. In other names, `\d`, `\w`, `\s` and `\b` know ASCII only, and `$` is the very end.
See docs/decisions/0031-patterns-of-users-run-in-linear-time.md.
"""

import re
from functools import lru_cache
from typing import Protocol, cast

import re2

MAX_MEMORY = 2**18
"""Bytes that one compiled pattern and its automata may take. RE2 refuses a pattern that needs more."""
LINEAR = (
    "Patterns run in linear time, so they have no lookahead or lookbehind, no references to groups, no "
    "possessive repetition, and at most 1000 repetitions"
)
_TOKEN = re.compile(r"\\.|\{,\d*\}|\[:\^?\w+:\]", re.DOTALL)
_OPTIONS = re2.Options()
_OPTIONS.max_mem = MAX_MEMORY
_OPTIONS.log_errors = False  # they would go to standard error


class UnsupportedPattern(ValueError):
    """The pattern is no regular expression, or has no equivalent that runs in linear time."""


class _Compiled(Protocol):
    @property
    def programsize(self) -> int: ...
    def search(self, text: str) -> object | None: ...
    def fullmatch(self, text: str) -> object | None: ...


def found_in(pattern: str, text: str) -> bool:
    """Return whether `pattern` matches anywhere in `text`, like `re.search`.

    Raises:
        UnsupportedPattern: see `refusal`.
    """
    return _compiled(pattern).search(text) is not None


def matches_all_of(pattern: str, text: str) -> bool:
    """Return whether `pattern` matches `text` from the first to the last character, like `re.fullmatch`.

    Raises:
        UnsupportedPattern: see `refusal`.
    """
    return _compiled(pattern).fullmatch(text) is not None


def refusal(pattern: str) -> str | None:
    """Return why a pattern is not accepted, or None if it is."""
    result = _compile(pattern)
    return result if isinstance(result, str) else None


def size(pattern: str) -> int:
    """Count the instructions in a compiled pattern; 0 if it is refused.

    A match takes at most time proportional to it and to the text's length.
    """
    result = _compile(pattern)
    return 0 if isinstance(result, str) else result.programsize


def _compiled(pattern: str) -> _Compiled:
    result = _compile(pattern)
    if isinstance(result, str):
        raise UnsupportedPattern(result)
    return result


# Refusals are cached as well: a stored spec may still have a pattern that is no longer accepted.
@lru_cache(maxsize=512)
def _compile(pattern: str) -> _Compiled | str:
    """Return the compiled pattern, or why it is not accepted."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"{pattern!r} is not a regular expression: {error}"
    refused = next(filter(None, map(_different_meaning, _TOKEN.findall(pattern))), None)
    if refused is not None:
        return f"{pattern!r} is not accepted: {refused}"
    try:
        # Only the name of this escape differs.
        translated = _TOKEN.sub(lambda token: r"\z" if token[0] == r"\Z" else token[0], pattern)
        return cast(_Compiled, re2.compile(translated, _OPTIONS))
    except UnicodeEncodeError:
        return f"{pattern!r} is not accepted: it has half of a surrogate pair"
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        return f"{pattern!r} is not accepted: {reason}. {LINEAR}"


def _different_meaning(token: str) -> str | None:
    """Return why a token is refused that RE2 accepts, but reads differently, or None if it reads the same."""
    if token.startswith("{"):
        return f"write {{0{token[1:]} instead of {token}"
    if token.startswith("["):
        return f"{token} has another meaning in other tools; list the characters, such as [A-Za-z]"
    if token[1].isdigit():
        return f"{token} refers to a group or is an octal number, which are not supported"
    return None
