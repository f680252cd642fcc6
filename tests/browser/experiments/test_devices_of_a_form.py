"""The devices in the experiment form: kinds and names in the mesh; model, memory and number of GPUs."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.experiments.test_experiment_form import FORM, Open, at, settled, spec, step
from tests.browser.looking import Look
from tests.datasets.making import bundle
from tests.factories import make_worker
from tests.people import People, browser_of

GB = 10**9


@pytest.fixture
def form(people: People, open_as: Open) -> Page:
    """The form where one worker has four GPUs of two models."""
    bundle()
    models = [("NVIDIA H200", 151 * GB)] * 2 + [("Tesla T4", 16 * GB)] * 2
    make_worker(
        name="box",
        slots=4,
        labels={"site": "berlin"},
        devices=[
            {"name": f"gpu:{number}", "kind": model, "memory_bytes": memory}
            for number, (model, memory) in enumerate(models)
        ],
    )
    page = open_as(people.owner, FORM)
    settled(page, "ok")
    return page


def test_gpus_are_asked_for_by_model_memory_and_number(form: Page, look: Look) -> None:
    page = form
    step(page, "Resources")
    at(page, "/resources/gpu").check()
    assert spec(page)["resources"]["gpu"] == {}
    expect(
        page.get_by_text("Running workers have 2 × NVIDIA H200 (151 GB), 2 × Tesla T4 (16 GB).")
    ).to_be_visible()
    at(page, "/resources/gpu/name").fill("B200")
    at(page, "/resources/gpu/memory_gb").fill("100")
    at(page, "/resources/gpu/count").fill("2")
    assert spec(page)["resources"]["gpu"] == {"name": "B200", "memory_gb": 100, "count": 2}
    settled(page, "bad")
    at(page, "/resources/slots").fill("2")
    settled(page, "ok")
    look(page, "form-gpus")
    at(page, "/resources/gpu/name").fill("")
    assert spec(page)["resources"]["gpu"] == {"memory_gb": 100, "count": 2}
    at(page, "/resources/gpu").uncheck()
    assert "gpu" not in spec(page)["resources"]


def test_a_mesh_names_its_devices_or_their_kind(form: Page, look: Look) -> None:
    page = form
    step(page, "Mesh")
    at(page, "/mesh").check()
    names = page.get_by_label("Names of the devices")
    expect(names).to_be_hidden()
    devices = at(page, "/mesh/devices")
    expect(devices.locator("option")).to_have_text(["CPU", "GPU", "by name"])
    devices.select_option(label="by name")
    expect(names).to_be_visible()
    at(page, "/mesh/simulate").fill("")
    names.fill("gpu:2,")
    offered = "[...document.querySelectorAll('#known-devices option')].map((one) => one.value)"
    assert page.evaluate(offered) == ["gpu:2, gpu:0", "gpu:2, gpu:1", "gpu:2, gpu:3"]
    names.fill("gpu:2, gpu:3")
    assert spec(page)["mesh"]["devices"] == ["gpu:2", "gpu:3"]
    expect(page.get_by_text("box: gpu:0 NVIDIA H200 (151 GB), gpu:1 NVIDIA H200")).to_be_visible()
    step(page, "Resources")
    at(page, "/resources/slots").fill("2")
    step(page, "Mesh")
    settled(page, "ok")
    look(page, "form-mesh-devices")
    devices.select_option(label="GPU")
    expect(names).to_be_hidden()
    assert spec(page)["mesh"]["devices"] == "gpu"


def test_a_label_that_no_worker_has_is_kept_and_named_beside_its_field(form: Page) -> None:
    step(form, "Resources")
    labels = at(form, "/resources/labels")
    labels.fill("site=rome")
    labels.blur()
    expect(labels.locator("..")).to_contain_text("has the labels site=rome, so the job will wait")
    expect(labels).to_have_value("site=rome")
    labels.fill("site=berlin")
    expect(labels.locator("..")).not_to_contain_text("will wait")


def test_the_form_of_a_script_names_what_no_worker_has(form: Page, people: People, open_as: Open) -> None:
    # `form` has made the worker.
    files = [{"path": "train.py", "text": "print('{\"step\": 1}')\n"}]
    body = {"project": "yard", "files": files}
    answer = browser_of(people.trainer).post("/api/v1/code", body, content_type="application/json")
    page = open_as(people.trainer, f"/p/yard/code/{answer.json()['digest']}/run")
    for label, known, away, sentence in (
        ("Pool", "default", "lab", "No worker is running in the pool lab, so the run will wait."),
        ("Labels", "site=berlin", "site=berlin, site=rome", "No running worker has site=rome,"),
        ("Model of the GPUs", "h200", "H300", "No running worker has the GPU H300, so the run will wait."),
    ):
        field = page.get_by_label(label, exact=True)
        field.fill(away)
        expect(field.locator("..")).to_contain_text(sentence)
        field.fill(known)
        expect(field.locator("..")).not_to_contain_text("so the run will wait")


def test_a_spec_for_tpus_shows_that_no_worker_has_one(form: Page) -> None:
    page = form
    step(page, "Mesh")
    at(page, "/mesh").check()
    body = spec(page)
    body["mesh"] = {"devices": "tpu", "shape": [2], "axis_names": ["data"]}
    page.locator(".ef-text").fill(json.dumps(body))
    settled(page, "bad")
    expect(at(page, "/mesh/devices").locator("option:checked")).to_have_text("tpu (not offered)")
    expect(page.get_by_text("no worker of pool 'default' reports a TPU").first).to_be_visible()
