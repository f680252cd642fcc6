"""A trained ensemble and a quantized version answer lists as they answer objects, in every protocol."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.ensemble.payload import EnsembleTask
from jobs.kinds.quantize.payload import QuantizeTask
from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Ensemble, Quantize
from tests.engine.helpers import csv_file, profiled
from tests.engine.making import ArtifactReport, train_member
from tests.serving.in_process import Served, Serving, connect, listening
from tests.serving.table_models import (
    CLASSES,
    SALES,
    VISITS,
    expected,
    forms_of_examples,
    forms_of_rows,
    predictions_in,
    rows_of,
)
from workers.engine.data.store import read_arrays
from workers.engine.models.build import signature_of
from workers.engine.models.files import load_model
from workers.engine.tasks import ensemble, quantize
from workers.features.values import Array
from workers.serving.child import model as models
from workers.serving.child.programs import Programs
from workers.serving.settings import Limits
from workers.serving.table import read_table

PLACES = [0, 7, 12, 13, 29, 24]
"""Rows of all stores."""
TYPES = {"store": "category", "amount": "number", "member": "boolean", "city": "category", "day": "date"}
Build = Callable[[Path, ExperimentSpec, DatasetFile], Path]


def pooled(folder: Path, spec: ExperimentSpec, file: DatasetFile) -> Path:
    """Train two members, and return the file of their ensemble."""
    members = tuple(train_member(folder, f"m{seed}", spec, file, units=8, seed=seed) for seed in (1, 2))
    report = ArtifactReport(folder / "ensemble")
    task = EnsembleTask(
        folder=str(report.folder), spec=spec, dataset=file, members=members, ensemble=Ensemble()
    )
    ensemble.run(task, report)
    return Path(report.artifacts["model"])


def quantized(folder: Path, spec: ExperimentSpec, file: DatasetFile) -> Path:
    """Train a model, and return the file with its weights as integers of 8 bits."""
    member = train_member(folder, "m", spec, file, units=64)
    report = ArtifactReport(folder / "quantized")
    task = QuantizeTask(
        folder=str(report.folder), spec=spec, dataset=file, quantize=Quantize(), model=member.model
    )
    quantize.run(task, report)
    return Path(report.artifacts["model"])


def trained(folder: Path, table: dict[str, Array], build: Build) -> tuple[Served, dict[str, Array]]:
    """Train a version on a table with three classes; return it as it is served, and the stored columns."""
    rows = rows_of(table, list(range(30)))
    lines = [",".join([*table, "y"])]
    lines += [",".join([*map(str, row.values()), CLASSES[place % 3]]) for place, row in enumerate(rows * 4)]
    columns = tuple({"name": name, "type": TYPES[name], "role": "feature"} for name in table)
    file = profiled(
        folder / "profile", source="csv", path=csv_file(folder, "\n".join(lines)), columns=columns, target="y"
    )
    data = {"dataset": "visits", "preprocessing": {"store": {"encode": "embedding"}}}
    spec = ExperimentSpec.model_validate({"data": data, "model": {"kind": "template", "template": "linear"}})
    path = build(folder, spec, file).rename(folder / "version.keras")
    served = read_table(path)
    assert served is not None
    programs = Programs(models.load(path), 64, 4)
    signature = signature_of(load_model(path, folder), served.pipeline.features)
    arrays = read_arrays(Path(file.path))
    stored = {str(name): arrays[f"column_{place}"] for place, name in enumerate(arrays["columns"])}

    def compute(x: Array) -> Array:
        answer: Array = programs.run([x.astype(np.float32)])[0]
        return answer

    return Served(signature, compute, served, CLASSES), {name: stored[name] for name in table}


@pytest.mark.parametrize("build", [pooled, quantized])
@pytest.mark.parametrize("table", [SALES, VISITS], ids=["numbers", "all types"])
async def test_lists_are_answered_like_objects(table: dict[str, Any], build: Build, tmp_path: Path) -> None:
    # Each datatype holds these numbers exactly.
    table = {**table, "amount": np.round(table["amount"] * 4) / 4}
    served, stored = trained(tmp_path, table, build)
    right = expected(served, stored, PLACES)
    assert len(np.unique(right[:, 0])) == len(PLACES)
    rows = rows_of(table, PLACES)
    async with listening(Serving(Limits(), served=served)) as serving:
        client = await connect(serving)
        for form in [*forms_of_rows(rows), *forms_of_examples(rows, "classify")]:
            head, body = await client.ask(form.content)
            assert head.startswith(b"HTTP/1.1 200 "), (form.name, body)
            np.testing.assert_allclose(predictions_in(body, form.key, 3), right, rtol=1e-5, err_msg=form.name)
        client.writer.close()
