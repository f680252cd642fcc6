"""Writes the files in which models are stored, with Keras."""

from pathlib import Path

from jobs.spec.base import Frozen
from workers.engine.exports.source import ExportedFile, ExportSource
from workers.engine.models.files import load_model, save_model


def write(source: ExportSource, path: Path, options: Frozen | None) -> ExportedFile:
    """Save a model with its pipeline, and load it."""
    del options
    save_model(source.model, path, source.features)
    return ExportedFile(load_model(path, path.parent))
