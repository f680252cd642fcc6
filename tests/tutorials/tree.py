"""Applies a tutorial to a copied source tree.

A tutorial writes a file by a sentence that names it, followed by its whole text:

    Write `path/of/file.py`:

    ```python
    …
    ```

and changes one by a diff, whose `-` and unmarked lines must occur in the file exactly once:

    Change `path/of/file.py`:

    ```diff
     unchanged
    -old
    +new
    ```
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests import database

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "jobs",
    "transport",
    "webapp",
    "workers",
    "templates",
    "docs",
    "tests",
    "manage.py",
    "pyproject.toml",
)
BLOCK = re.compile(r"^(Write|Change) `([^`\n]+)`[^\n]*:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Tree:
    """A copied tree under `root`, and a tutorial's changes.

    Attributes:
    root: the copy's folder.
        written: paths of new files.
        added: by the path of a changed file, the lines that are new in it.
        removed: the same for lines that are gone.
    """

    root: Path
    written: list[str] = field(default_factory=list)
    added: dict[str, list[str]] = field(default_factory=dict)
    removed: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def copy(cls, root: Path) -> "Tree":
        """Copy the tree without build outputs. Byte code stays valid: a copy keeps a file's time."""
        without = shutil.ignore_patterns("node_modules", "screenshots")
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=without)
            else:
                shutil.copy(source, root / name)
        return cls(root)

    def follow(self, document: str) -> None:
        """Write and change every file in the document, in its order."""
        blocks = BLOCK.findall((ROOT / "docs" / document).read_text())
        assert blocks, f"{document} changes no file"
        for verb, path, text in blocks:
            if verb == "Write":
                self._write(path, text)
            else:
                self._change(path, text)

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        assert not file.exists(), f"{path} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.written.append(path)

    def _change(self, path: str, diff: str) -> None:
        lines = diff.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        file = self.root / path
        text = file.read_text()
        assert text.count(before) == 1, f"{path} does not have these lines once:\n{before}"
        file.write_text(text.replace(before, after))
        self.added.setdefault(path, []).extend(line[1:] for line in lines if line[0] == "+")
        self.removed.setdefault(path, []).extend(line[1:] for line in lines if line[0] == "-")

    def run(self, *arguments: str, **environment: str) -> str:
        """Run Python with these arguments in the tree; return its standard output.

        Raises:
            AssertionError: the command failed; the message has its output.
        """
        # These would connect the command to the database and the broker of the tests that run it.
        dropped = ("PYTEST_", "TRAINYARD_")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        variables |= {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        if (tables := database.file_of_tables()).exists():
            variables[database.TABLES_VARIABLE] = str(tables)
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=variables,
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def test(self, *arguments: str, **environment: str) -> str:
        """Run tests in the tree; return a line a test."""
        return self.run("-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments, **environment)
