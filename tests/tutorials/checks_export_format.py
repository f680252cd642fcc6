"""Tests that `test_new_export_format` runs in a copied tree with the tutorial's changes."""

from pathlib import Path
from typing import Any

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Quantize
from tests.experiments.conftest import SPEC
from tests.factories import make_job
from tests.markup import text_of
from tests.people import People, browser_of
from tests.present import present
from tests.reports import quantization_report, store_report
from tests.tutorials.checks_template import judged
from tests.world import World, world  # noqa: F401  a fixture

STEP = {"mode": "rounded_weights", "options": {"digits": 4}}


def problems(world: World, step: dict[str, Any]) -> list[str]:  # noqa: F811
    answer = judged(world, {**SPEC, "after": {"quantize": step}})
    assert answer["valid"] == (not answer["errors"])
    return [error["pointer"] for error in answer["errors"]]


def test_the_form_offers_it(world: World) -> None:  # noqa: F811
    text = world.client(world.owner).get("/p/yard/experiments/new").content.decode()
    for part in ("Rounded", "/after/quantize/options/digits", "Binary digits that each weight keeps."):
        assert part in text


def test_rest_documents_it_and_refuses_invalid_options(world: World) -> None:  # noqa: F811
    document = world.client(world.owner).get("/api/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    modes = schemas["Quantize"]["properties"]["mode"]["enum"]
    assert modes == ["int8", "float16", "bfloat16", "rounded_weights"]
    assert "RoundedOptions" in str(schemas["Quantize"]["properties"]["options"])
    assert problems(world, STEP) == []
    assert problems(world, {"mode": "rounded_weights"}) == []
    assert problems(world, {"mode": "rounded_weights", "options": {"digits": 99}}) == [
        "/spec/after/quantize/options/digits"
    ]
    assert problems(world, {"mode": "int8", "options": {"digits": 4}}) == ["/spec/after/quantize/options"]


def test_its_job_and_its_report_have_its_label(people: People) -> None:
    job = make_job(by=people.owner, project=people.project, kind="quantize", state="completed")
    store_report(job, quantization_report(mode="rounded_weights"))
    text = text_of(browser_of(people.viewer).get(f"/jobs/{job.pk}", {"tab": "report"}))
    assert "Rounded is" in text


def test_the_engine_writes_it(tmp_path: Path) -> None:
    import numpy as np

    from jobs.kinds.quantize.payload import QuantizeTask
    from jobs.messages.reports.quantization import QuantizationReport
    from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
    from workers.engine.models.files import load_model
    from workers.engine.tasks import quantize

    spec, file = spec_for("wine"), dataset_file(tmp_path, "wine")
    member = train_member(tmp_path, "m", spec, file, units=16)
    report = ArtifactReport(tmp_path / "run")
    step = Quantize.model_validate(STEP)
    task = QuantizeTask(
        folder=report.folder, spec=spec, quantize=step, dataset=file, model=member.model, threads=1
    )
    quantize.run(QuantizeTask.model_validate_json(task.model_dump_json()), report)
    assert report.artifacts["model"].name == "rounded.keras"
    comparison = QuantizationReport.model_validate_json(report.artifacts["report"].read_bytes())
    assert comparison.mode == "rounded_weights"
    assert all(0 < present(layer.relative_error) < 2**-4 for layer in comparison.layers)
    model = load_model(report.artifacts["model"], tmp_path)
    kernel = np.array(model.layers[-1].kernel)
    assert not np.array_equal(kernel, np.array(load_model(Path(member.model), tmp_path).layers[-1].kernel))


def test_a_stored_spec_is_read_again() -> None:
    spec = ExperimentSpec.model_validate({**SPEC, "after": {"quantize": STEP}})
    assert ExperimentSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.model_dump(mode="json")["after"]["quantize"] == STEP
