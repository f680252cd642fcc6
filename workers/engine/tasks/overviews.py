"""Writes the overview for a dataset version or a split while it is computed."""

from collections.abc import Iterable
from pathlib import Path

from jobs.messages.overview import SplitOverview
from workers.engine.report import Report

OVERVIEW = "overview.json"


def write_overviews(overviews: Iterable[SplitOverview], report: Report) -> None:
    """Write an overview each time it has further sections. The job keeps the newest."""
    for overview in overviews:
        # The supervisor reads a file after it was reported, so none is written twice.
        left = len(overview.pending)
        path = OVERVIEW if not left else f"overview_{left}.json"
        (Path(report.folder) / path).write_text(overview.model_dump_json())
        report.artifact("overview", path, name=OVERVIEW)
        report.phase("working")
