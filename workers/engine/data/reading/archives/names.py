"""Recognizes the files in an archive that are no data by their names."""

import re
from pathlib import PurePosixPath

MAX_FILES = 200_000
"""Entries of an archive, folders included."""
MAX_DEPTH = 10
"""Folders around a file."""
HIDDEN_FOLDERS = frozenset({"__MACOSX"})
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|changelog|citation|authors)\b", re.IGNORECASE)
ABOUT_SUFFIXES = frozenset({".md", ".rst", ".pdf", ".html", ".htm", ".url", ".names", ".docx", ".doc"})
"""Begins of names, and suffixes, of files that describe the others."""
HIDDEN_FILES = frozenset({"thumbs.db", "desktop.ini"})


def is_hidden(path: str) -> bool:
    """Return whether a file in an archive was added by an operating system."""
    parts = path.split("/")
    if any(part.startswith(".") or part in HIDDEN_FOLDERS for part in parts):
        return True
    return parts[-1].lower() in HIDDEN_FILES


def is_about(path: str) -> bool:
    """Return whether a file in an archive describes the others, by its name."""
    name = PurePosixPath(path)
    suffix = name.suffix.lower()
    return suffix in ABOUT_SUFFIXES or (suffix in ("", ".txt") and ABOUT.match(name.name) is not None)
