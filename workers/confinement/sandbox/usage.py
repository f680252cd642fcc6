"""Measures a sandbox's processes, and their files. Reads /proc and folders: call it in a thread."""

import contextlib
import math
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_HELPERS = 2
"""How many generations of processes, beginning with the started one, are not the command's; docs/sandbox.md
shows them."""
_BLOCK = 512
_CHILDREN = "children"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108  only its size is read
_NESTED = 200
"""Folders in folders. Deeper ones cannot be opened by the paths of the system."""
_ENTRY = 4096
"""The least bytes that an entry of a folder counts: an empty file has no block, but uses the file system."""


class Unmeasurable(Exception):
    """The run has folders or processes that cannot be measured."""


def processes(outer: int, *, joined: bool = False) -> list[int]:
    """Return the pids of a sandbox's processes.

    All are descendants of the process that the worker started, also those whose parents have ended: the first
    process in the PID namespace, or the subreaper, has become their parent.

    Args:
        outer: the process that the worker started.
        joined: a fork may have joined bubblewrap's namespaces, see `forked`.

    Raises:
        Unmeasurable: the kernel does not list the children of processes.
    """
    pids: list[int] = []
    generation, depth = [outer], 0
    seen = {outer}
    while generation:
        depth += 1
        generation = [child for pid in generation for child in children(pid) if child not in seen]
        seen.update(generation)
        if depth >= _HELPERS:
            pids += generation
    waiting = _waiting_process(outer) if joined else None
    return [pid for pid in pids if pid != waiting]


def _waiting_process(outer: int) -> int | None:
    """Return the process that waits for a fork; None if no fork has joined."""
    # The kernel lists children in the order in which they came: bubblewrap has first that which joins, then
    # the first process of the PID namespace, which has first that which waits, then orphans of the run.
    of_bubblewrap = list(children(outer))
    return next(children(of_bubblewrap[1]), None) if len(of_bubblewrap) > 1 else None


def memory(pids: Iterable[int], *, limit: int, private_files: bool) -> int:
    """Return how many bytes of memory processes use, with files that are only in memory.

    Args:
        pids: the processes.
        limit: the precise sum is slow, and measured only if the resident memory is above this.
        private_files: /dev/shm belongs to these processes alone.
    """
    pids = list(pids)
    files = _files_in_memory(pids, private_files=private_files)
    rough = sum(_rough_memory(pid) for pid in pids) + files
    if rough <= limit:
        return rough
    unshared, shared = 0, 0
    for pid in pids:
        proportional = _fields(f"/proc/{pid}/smaps_rollup")
        if "Pss" in proportional:
            unshared += proportional.get("Pss_Anon", 0) + proportional.get("SwapPss", 0)
            shared += proportional.get("Pss_Shmem", 0)
        else:  # it has ended, or may not be read
            unshared += _rough_memory(pid)
    # A file in memory that is also mapped is counted once.
    return unshared + max(shared, files)


def _rough_memory(pid: int) -> int:
    status = _fields(f"/proc/{pid}/status")
    return sum(status.get(name, 0) for name in ("RssAnon", "RssShmem", "VmSwap"))


def _fields(path: str) -> dict[str, int]:
    """Return the fields in a /proc file that are given in kB, in bytes."""
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, ValueError):
        return {}
    parts = (line.split() for line in lines if line.endswith(" kB"))
    return {part[0].rstrip(":"): int(part[1]) * 1024 for part in parts if len(part) == 3}


def _files_in_memory(pids: list[int], *, private_files: bool) -> int:
    total = sum(size for size, in_memory in _deleted_files(pids) if in_memory)
    for pid in pids if private_files else ():
        # All see the same, but the first ones may have ended.
        with contextlib.suppress(OSError):
            system = os.statvfs(f"/proc/{pid}/root{_SHARED_MEMORY}")
            return total + (system.f_blocks - system.f_bfree) * system.f_frsize
    return total


def is_hidden(pids: Iterable[int]) -> bool:
    """Return whether the worker cannot read which files a process has open.

    A process can forbid it if both have one user. Without CAP_SYS_PTRACE, the kernel forbids it for processes
    of other users.
    """
    for pid in pids:
        try:
            _read_one_link(f"/proc/{pid}/fd")
        except PermissionError:
            # One that has ended, and was not waited for, has no files, and belongs to root.
            if not _has_ended(pid):
                return True
        except OSError:  # it does not exist any more
            continue
    return False


def _read_one_link(folder: str) -> None:
    # A list of the names is no proof: a worker that may read all folders gets it, but none of the links.
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # it was closed
                os.readlink(entry.path)  # noqa: PTH115  the text, not a path
                return


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _deleted_files(pids: Iterable[int]) -> Iterator[tuple[int, bool]]:
    """Yield the size of each open file without a name, and whether it is in memory."""
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    name = os.readlink(entry.path)  # noqa: PTH115  the text, not a path
                    if not name.endswith(" (deleted)"):
                        continue
                    facts = os.stat(entry.path)  # noqa: PTH116
                    key = (facts.st_dev, facts.st_ino)
                    if stat.S_ISREG(facts.st_mode) and key not in seen:
                        seen.add(key)
                        yield facts.st_blocks * _BLOCK, name.startswith("/memfd:")


def disk(folders: Iterable[str], pids: Iterable[int], *, limit: float = math.inf) -> int:
    """Return the bytes in folders, and in deleted files that processes hold open.

    Each folder entry counts at least 4 KiB. Above `limit`, the rest is not measured.

    Raises:
        Unmeasurable: a folder cannot be read.
    """
    total = sum(size for size, in_memory in _deleted_files(pids) if not in_memory)
    for folder in folders:
        if total > limit:
            break
        total += _folder_bytes(folder, limit - total)
    return total


def _folder_bytes(folder: str, limit: float) -> int:
    total = 0
    folders = [(folder, 0)]
    # A file with several names is counted once.
    seen: set[tuple[int, int]] = set()
    while folders:
        path, depth = folders.pop()
        if depth > _NESTED:
            raise Unmeasurable(f"folders are nested more than {_NESTED} deep")
        for entry in _entries(path):
            try:
                facts = entry.stat(follow_symlinks=False)
            except OSError:  # it was removed
                continue
            key = (facts.st_dev, facts.st_ino)
            if key not in seen:
                seen.add(key)
                total += max(facts.st_blocks * _BLOCK, _ENTRY)
                if total > limit:
                    return total
            if stat.S_ISDIR(facts.st_mode):
                folders.append((entry.path, depth + 1))
    return total


def _entries(path: str) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(path) as entries:
            yield from entries
    except (FileNotFoundError, NotADirectoryError):  # it was removed
        return
    except OSError as error:
        raise Unmeasurable(f"a folder cannot be read ({error.strerror})") from error


def children(pid: int) -> Iterator[int]:
    """Yield the pids of a process's children.

    Raises:
        Unmeasurable: the kernel does not list them.
    """
    # Each thread has a list of the children that it started.
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  names
    except OSError:
        return
    for task in tasks:
        folder = Path(f"/proc/{pid}/task/{task}")
        try:
            pids = (folder / _CHILDREN).read_text().split()
        except OSError:
            if folder.exists():
                raise Unmeasurable("the kernel does not list the children of processes") from None
            continue  # it has ended
        yield from map(int, pids)
