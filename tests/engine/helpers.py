"""Helpers for engine tests: a report that records its calls, small data sets, short specs."""

from pathlib import Path
from typing import Any

import numpy as np

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.model import model_json
from workers.engine.tasks.profile import run as run_profile


class RecordingReport:
    """A `Report` that records its calls; `requests` are the requests it returns, in order."""

    def __init__(self, folder: Path | str = ".") -> None:
        self.folder = str(folder)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.requests: list[str | None] = []

    def for_trial(self, number: int) -> "RecordingReport":
        return self

    def request(self) -> Any:
        return self.requests.pop(0) if self.requests else None

    def curves(self) -> list[Any]:
        return []

    def recorded(self) -> list[str]:
        return [args[0] for args, _ in self.of("checkpoint")]

    def of(self, kind: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, named) for name, args, named in self.calls if name == kind]

    def __getattr__(self, kind: str) -> Any:
        return lambda *args, **named: self.calls.append((kind, args, named))


def spec_of(dataset: str = "digits", template: str = "mlp", **parts: Any) -> ExperimentSpec:
    """Return a small spec; `args` goes to the template, `split` to the data."""
    data = {"dataset": dataset, "split": parts.pop("split", {})}
    model = model_json(template, parts.pop("args", {}))
    return ExperimentSpec.model_validate({"data": data, "model": model, **parts})


def profiled(folder: Path, **task: Any) -> DatasetFile:
    """Run a profile task in this process; `bundled="iris"` or `source=…, path=…`."""
    folder.mkdir(parents=True, exist_ok=True)
    if "bundled" in task:
        task["source"] = "bundled"
    result = run_profile(ProfileTask(folder=str(folder), **task), RecordingReport(folder))
    return DatasetFile(path=str(folder / result["path"]), digest=result["digest"], profile=result["profile"])


def csv_file(folder: Path, text: str) -> str:
    """Write a CSV file; return its path."""
    file = folder / "data.csv"
    file.write_text(text)
    return str(file)


def blobs(rows: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return three well separated classes in four features."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    x = rng.normal(size=(rows, 4)) + 3 * y[:, None]
    return x.astype(np.float32), y.astype(np.int32)
