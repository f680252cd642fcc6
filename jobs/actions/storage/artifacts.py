"""Creates rows for stored files."""

from jobs import clock
from jobs.models import Artifact
from jobs.store import StoredFile


def adopt(file: StoredFile) -> Artifact:
    """Return the row for a file that was just stored. The collection leaves it alone for a day from now.

    The row is locked until the caller's transaction ends, so that the collection cannot delete it before
    the caller's reference to it is visible.
    """
    rows = Artifact.objects.filter(digest=file.digest)
    # First the update: a row that is only read could be deleted before the reference is written.
    if not rows.update(stored=clock.now()):
        return Artifact.objects.get_or_create(digest=file.digest, defaults={"bytes": file.bytes})[0]
    return rows.get()
