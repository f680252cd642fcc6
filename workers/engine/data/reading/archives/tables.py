"""Finds the tables in a zip or tar archive, and unpacks them."""

from pathlib import Path, PurePosixPath

from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.foreign_formats import foreign_by_name
from jobs.upload_formats import COMPRESSED, SUFFIXES
from workers.engine.data.reading.archives.names import MAX_DEPTH, MAX_FILES, is_about, is_hidden
from workers.engine.data.reading.damage import reading
from workers.engine.errors import BadData
from workers.system.archives import ZIP, Archive, BadArchive, DamagedArchive, Limits

IMAGES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
DESCRIBING = frozenset({".txt", ".json", ".dat", ".data"})
"""Suffixes of tables that are also those of notes; they are read if no other file is a table."""
MAX_TABLES = 100
SHOWN = 5


class _HasImages(Exception):
    """The archive has images, whose reader takes it as a whole."""


def archived_tables(path: Path, folder: Path, limits: FileLimits) -> list[tuple[str, Path]] | None:
    """Unpack the tables in an archive; return the path in it and the file of each, by name.

    Args:
        path: the archive.
        folder: for the files.
        limits: how many bytes they may have together.

    Returns:
        None if the archive has images.

    Raises:
        BadData: it has neither images nor a table, or one that is refused.
        DamagedFile: it is damaged.
    """
    names: list[str] = []

    def note(name: str) -> bool:
        if PurePosixPath(name).suffix.lower() in IMAGES and not is_hidden(name):
            raise _HasImages
        names.append(name)
        return True

    most = limits.of_large_tables().expanded_bytes
    with path.open("rb") as file:
        # A file of a tar archive is in memory as a whole.
        largest = most if file.read(4) in ZIP else limits.expanded_bytes
    bounds = Limits(MAX_FILES, MAX_DEPTH, largest, most, 0, stream_bytes=most, may_nest=True)
    try:
        for _ in Archive(path, bounds, note).files():
            pass
        tables = _tables(path.name, [name for name in names if not is_hidden(name)])
        return sorted(Archive(path, bounds, lambda name: name not in tables).unpack(folder))
    except _HasImages:
        return None
    except BadArchive as error:
        raise BadData(str(error)) from error
    except DamagedArchive as error:
        with reading(path, error.kind, "pack the files again"):
            raise error.__cause__ or error from None


def _tables(archive: str, names: list[str]) -> set[str]:
    """Return the names of the tables among the files in an archive."""
    tables = [name for name in names if _suffix(name) in SUFFIXES and not is_about(name)]
    clear = [name for name in tables if _suffix(name) not in DESCRIBING]
    found = clear or tables
    files = [name for name in names if not is_about(name) and PurePosixPath(name).name]
    if not found and (refusals := [refusal for name in files if (refusal := foreign_by_name(name))]):
        raise BadData(f"in {archive}, {refusals[0]}")
    if not found and len(leaves := _leaves(files)) == 1:
        found = leaves
    if not found:
        shown = ", ".join(_leaves(names)[:SHOWN]) or "nothing"
        raise BadData(f"{archive} has no images and no table; it has {shown}")
    if len(found) > MAX_TABLES:
        raise BadData(f"{archive} has {len(found):,} tables; a version has at most {MAX_TABLES} files")
    return set(found)


def _leaves(names: list[str]) -> list[str]:
    """Return the names that are no folders of others."""
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    return [name for name in names if name and name not in folders]


def _suffix(name: str) -> str:
    path = PurePosixPath(name)
    return (PurePosixPath(path.stem) if path.suffix.lower() in COMPRESSED else path).suffix.lower()
