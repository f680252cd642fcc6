"""Declares the model that a format writes, and the file that it returns."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from jobs.messages.reports.quantization import LayerError, SkippedLayer
from jobs.spec.data.features import Features
from workers.engine.arrays import Array
from workers.engine.models.files import load_model
from workers.features.files import read_features


@dataclass(frozen=True)
class ExportSource:
    """A model that is written in a format.

    Attributes:
        model: the model in memory. A format does not change it.
        features: the pipeline that makes its input from table columns; None without one.
        file: its stored file, from which copies are loaded; None if it has none yet.
        sample: rows for which predictions are compared, (rows, …); None if the caller compares them.
    """

    model: Any
    features: Features | None
    file: Path | None = None
    sample: Array | None = None

    @classmethod
    def of_file(cls, file: Path, folder: Path, sample: Array | None = None) -> Self:
        """Load a stored file; `folder` is for temporary links."""
        return cls(load_model(file, folder), read_features(file), file, sample)

    @property
    def required_sample(self) -> Array:
        """Return the sample.

        Raises:
            ValueError: there is none.
        """
        if self.sample is None:
            raise ValueError("this format compares predictions itself; give it a sample of rows")
        return self.sample

    def load_copy(self, folder: Path) -> Any:
        """Load the model once more, so that it can be changed.

        Raises:
            ValueError: it has no file.
        """
        if self.file is None:
            raise ValueError("the model has no file from which a copy could be loaded; save it first")
        return load_model(self.file, folder)


class ComparedLayers(NamedTuple):
    """The layers with a kernel or table: those that were quantized, and those that stay as they are."""

    quantized: tuple[LayerError, ...] = ()
    skipped: tuple[SkippedLayer, ...] = ()


class ExportedFile(NamedTuple):
    """A written file.

    Attributes:
        model: as loaded from the file.
        layers: for a quantization, how its layers compare.
    """

    model: Any
    layers: ComparedLayers = ComparedLayers()
