"""Reads how much memory this process may use: of the machine, or less if a control group limits it.

A service of systemd, a step of Slurm and a container have groups with limits, and groups above them may have
lower ones. Of all these the smallest is in force. Both versions of control groups are read.
"""

import functools
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SYSTEM = Path("/")
GROUPS_SECONDS = 60.0
"""The groups of a process are looked up this often; their limits and use are read each time."""


class _Version(NamedTuple):
    """The names of a version of control groups."""

    limit: str
    used: str
    inactive_file: str


_VERSIONS: Mapping[str, _Version] = {
    "cgroup2": _Version("memory.max", "memory.current", "inactive_file"),
    "cgroup": _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""By the type of the file system."""


class _Group(NamedTuple):
    folder: Path
    version: _Version

    def limit(self) -> int | None:
        """Return the limit in bytes; None without one, as in the root."""
        try:
            text = (self.folder / self.version.limit).read_text().strip()
        except OSError:
            return None
        return int(text) if text.isdecimal() else None

    def free(self) -> int | None:
        """Return the bytes until the limit; None without one."""
        limit = self.limit()
        if limit is None:
            return None
        try:
            used = int((self.folder / self.version.used).read_text())
            lines = (self.folder / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):
            return None
        statistics = dict(line.split(maxsplit=1) for line in lines if " " in line)
        # The used memory includes the page cache. The kernel frees its inactive part when memory is needed.
        return max(0, limit - used + int(statistics.get(self.version.inactive_file, 0)))


def total_memory(system: Path = SYSTEM) -> int:
    """Return the bytes that this process and its children may use: the machine's, or the smallest limit."""
    limits = [limit for group in _groups_of_now(system) if (limit := group.limit()) is not None]
    return min([_machine(system, "MemTotal") or _physical(), *limits])


def available_memory(system: Path = SYSTEM) -> int | None:
    """Return the bytes that can be allocated before the kernel ends a process; None if unknown."""
    free = [left for group in _groups_of_now(system) if (left := group.free()) is not None]
    machine = _machine(system, "MemAvailable")
    return min([*free, *([] if machine is None else [machine])], default=None)


def _physical() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _machine(system: Path, name: str) -> int | None:
    for line in _lines(system / "proc" / "meminfo"):
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _groups_of_now(system: Path) -> tuple[_Group, ...]:
    """Return the groups of this process. A worker asks each second, and a process hardly ever gets others."""
    return _groups_in_period(system, int(time.monotonic() // GROUPS_SECONDS))


@functools.lru_cache(maxsize=1)
def _groups_in_period(system: Path, _: int) -> tuple[_Group, ...]:
    return tuple(_groups(system))


def _groups(system: Path) -> Iterator[_Group]:
    """Yield the groups of this process that may limit its memory, each followed by those above it."""
    own = dict(_own_groups(system))
    for line in _lines(system / "proc" / "self" / "mountinfo"):
        # Fields: id, parent, device, root, mount point, options, optional ones, "-", type, source, options.
        mounted, _, described = line.partition(" - ")
        fields, (kind, *rest) = mounted.split(), described.split() or [""]
        is_read = kind == "cgroup2" or (kind == "cgroup" and "memory" in rest[-1].split(","))
        if not is_read or kind not in own or len(fields) < 5:
            continue
        root, point = _unescaped(fields[3]), system / _unescaped(fields[4]).lstrip("/")
        path = own[kind]
        # In a container the mount begins at its own group, or its path is one outside of the mount.
        is_below = path == root or path.startswith(root.rstrip("/") + "/")
        inside = path[len(root.rstrip("/")) :].strip("/") if is_below else ""
        folder = point if ".." in inside.split("/") else point / inside
        for group in (folder, *folder.parents):
            yield _Group(group, _VERSIONS[kind])
            if group == point:
                break


def _own_groups(system: Path) -> Iterator[tuple[str, str]]:
    """Yield the type of the file system and the path of each group of this process for memory."""
    for line in _lines(system / "proc" / "self" / "cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            yield "cgroup2", path
        elif "memory" in controllers.split(","):
            yield "cgroup", path


def _unescaped(path: str) -> str:
    # The kernel writes white space and backslashes in paths as octal numbers.
    return path.encode().decode("unicode_escape") if "\\" in path else path


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
