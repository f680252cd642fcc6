"""Writes a model in any format of the table; the entry point of this package."""

import pkgutil
from collections.abc import Callable
from pathlib import Path

from jobs.spec.base import Frozen
from jobs.spec.exports import STORED, ExportFormat
from workers.engine.exports.source import ExportedFile, ExportSource

Writer = Callable[[ExportSource, Path, Frozen | None], ExportedFile]
"""Writes a model to a path with the options of the format, and returns it as loaded from there."""

# Every training ends with this one. Not imported only then: an upgrade may have replaced the program's files.
pkgutil.resolve_name(STORED.writer)


def write_model(
    export_format: ExportFormat, source: ExportSource, path: Path, options: Frozen | None = None
) -> ExportedFile:
    """Write a model in a format. Its module is imported at its first use; the stored format's, at the start.

    Args:
        export_format: the entry in the table.
        source: the model.
        path: where the file is written; its folder is for temporary files.
        options: an instance of the format's options class; None: the defaults.

    Raises:
        EngineError: the format cannot hold this model; the message has the reason.
    """
    writer: Writer = pkgutil.resolve_name(export_format.writer)
    if options is None and export_format.options is not None:
        options = export_format.options()
    return writer(source, path, options)
