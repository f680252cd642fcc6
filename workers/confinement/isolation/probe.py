"""Reports which files a confined process can reach: `python -m workers.confinement.isolation.probe JSON`.

The argument has the lists `needed`, folders in which it must be able to write, and `private`, files and
folders that it must not read. It prints the private ones that it could read, as a JSON list.
"""

import json
import os
import sys
from collections.abc import Collection
from pathlib import Path

# Runners need Python's packages and this program, which may be in a folder that they cannot enter.
import numpy  # noqa: F401

import workers.system.line_splitter  # noqa: F401


def main() -> None:
    """Try them all."""
    asked = json.loads(sys.argv[1])
    for folder in asked["needed"]:
        file = Path(folder) / f"probe-{os.getpid()}"
        file.write_bytes(b"")
        file.unlink()
    needed = [Path(folder) for folder in asked["needed"]]
    parents = {parent for folder in needed for parent in (folder, *folder.parents)}
    private = map(Path, asked["private"])
    sys.stdout.write(json.dumps([str(path) for path in private if _is_readable(path, parents)]))


def _is_readable(path: Path, parents: Collection[Path]) -> bool:
    """Return whether a file can be read, or a folder lists anything but the parents of this process' own."""
    try:
        if path.is_dir():
            return any(entry not in parents for entry in path.iterdir())
        with path.open("rb"):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    main()
