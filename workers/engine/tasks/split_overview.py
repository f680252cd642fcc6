"""Runs the task that compares the parts in a dataset version's split."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.kinds.split_overview.payload import SplitOverviewTask
from jobs.messages.overview import SplitOverview
from jobs.spec.data.profile import Profile
from workers.engine.arrays import Array
from workers.engine.data.dataset import columns_of
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.data.overview.overview import with_parts
from workers.engine.data.reading.arrow_file import is_arrow
from workers.engine.data.rows import WholeColumns
from workers.engine.data.store import read_arrays
from workers.engine.report import Report
from workers.engine.tasks.overviews import write_overviews

STEPS = 2


def run(task: SplitOverviewTask, report: Report) -> dict[str, Any]:
    """Write `overview.json`: first the target in each part, then also the rows that training knows.

    Raises:
        BadData: the file is damaged.
    """
    report.phase("working")
    profile = Profile.model_validate(task.dataset.profile)
    columns, y, x = _content(Path(task.dataset.path), profile)
    report.progress(1, STEPS, "steps")
    report.phase("working")
    overview = SplitOverview(rows=profile.rows, split=task.split, pending=("parts", "repeats"))
    write_overviews(with_parts(overview, columns, y, profile, x), report)
    report.progress(STEPS, STEPS, "steps")
    return {}


def _content(path: Path, profile: Profile) -> tuple[Mapping[str, Array], Array, Array | None]:
    """Return the columns, the encoded target, and the features if the data are no table.

    A table's columns may not fit into memory together, so each is read when it is used.
    """
    has_arrays = profile.kind == "image" or not profile.has_pipeline
    if is_arrow(path) and not has_arrays:
        columns = MappedColumns(path)
        return WholeColumns(columns), columns.array("y"), None
    arrays = read_arrays(path)
    # The images of an archive are no column here: their features are the pixels.
    return columns_of(arrays, has_images=False), arrays["y"], arrays["x"] if has_arrays else None
