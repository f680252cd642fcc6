"""Reads and writes the file of the secret key, which has further keys while the key is rotated.

The first line is the present key, which signs. Other lines have keys that only verify:

    next KEY
    former KEY 2026-12-31T12:00:00+00:00
"""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from jobs.atomic_files import replace_file

MIN_CHARACTERS = 50
"""A shorter key could be guessed."""


class BadKeyFile(ValueError):
    """The file is damaged. The message has the reason, and no key."""


@dataclass(frozen=True)
class FormerKey:
    """A key that signed before. It verifies sessions until a time, and decrypts while it is in the file."""

    text: str
    until: dt.datetime


@dataclass(frozen=True)
class SecretKeys:
    """The keys of an installation.

    Attributes:
        present: the one that signs; empty in a process without a key.
        next: the one that signs after the rotation, which is already verified with.
        former: those that signed before.
    """

    present: str
    next: str = ""
    former: tuple[FormerKey, ...] = ()

    def verifying(self) -> list[str]:
        """Return the keys with which sessions are verified now, besides the present one."""
        now = dt.datetime.now(dt.UTC)
        return [key for key in (self.next,) if key] + [key.text for key in self.former if key.until > now]

    def all(self) -> list[str]:
        """Return all keys, the present one first."""
        return [key for key in (self.present, self.next, *(former.text for former in self.former)) if key]

    def promoted(self, until: dt.datetime) -> "SecretKeys":
        """Return the keys after the rotation: the next one signs, the present one verifies until a time."""
        return SecretKeys(self.next, former=(FormerKey(self.present, until), *self.former))

    def text(self) -> str:
        """Return the file's content."""
        lines = [self.present]
        lines += [f"next {self.next}"] if self.next else []
        lines += [f"former {key.text} {key.until.isoformat()}" for key in self.former]
        return "\n".join(lines) + "\n"


def parse(text: str) -> SecretKeys:
    """Read the file's content.

    Raises:
        BadKeyFile: it is damaged, or a key is too short.
    """
    first, *lines = text.strip().splitlines() or [""]
    following, former = "", list[FormerKey]()
    for number, line in enumerate(lines, start=2):
        match line.split():
            case ["next", key] if not following:
                following = key
            case ["former", key, until]:
                former.append(FormerKey(key, _time(until, number)))
            case []:
                continue
            case _:
                raise BadKeyFile(f"line {number} is neither `next KEY` nor `former KEY TIME`")
    keys = SecretKeys(first.strip(), following, tuple(former))
    if min(len(key) for key in (keys.present, *keys.all())) < MIN_CHARACTERS:
        raise BadKeyFile("the key is too short")
    return keys


def _time(text: str, number: int) -> dt.datetime:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise BadKeyFile(f"line {number} has no time with a zone, such as 2026-12-31T12:00:00+00:00")
    return time


def write(path: Path, keys: SecretKeys) -> None:
    """Replace the file in one step.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(path, keys.text().encode())
