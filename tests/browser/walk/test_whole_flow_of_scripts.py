"""Scripts in the browser: one to a served version, and one with packages to a finished search."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.walk.cast import Cast
from tests.code.making import zipped
from tests.environments.packages import wheel
from tests.flow.test_own_code import needs_sandbox
from tests.flow.yard import RunningYard

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1800)]

SCRIPT = """
import argparse
import os

import numpy as np
import pyarrow.parquet as pq

import trainyard_report

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1, help="of the steps")
parser.add_argument("--epochs", type=int, default=5)
given = parser.parse_args()

table = pq.read_table(trainyard_report.data())
names = [name for name in table.column_names if name not in ("species", "trainyard_part")]
x = np.stack([table[name].to_numpy() for name in names], axis=1).astype("float32")
labels = sorted(set(table["species"].to_pylist()))
y = np.array([labels.index(name) for name in table["species"].to_pylist()])
part = np.array(table["trainyard_part"].to_pylist())

weights, biases = np.zeros((4, 3), "float32"), np.zeros(3, "float32")
train = part == "train"
for epoch in range(1, given.epochs + 1):
    scores = x[train] @ weights + biases
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    wrong = chances - np.eye(3)[y[train]]
    weights -= (given.rate * x[train].T @ wrong / train.sum()).astype("float32")
    biases -= (given.rate * wrong.mean(0)).astype("float32")
    checked = part == "validation"
    accuracy = float((np.argmax(x[checked] @ weights + biases, 1) == y[checked]).mean())
    trainyard_report.report(epoch, accuracy=accuracy, rate=given.rate)

import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.layers[0].set_weights([weights, biases])
model.save(trainyard_report.output("model.keras"))
with open(trainyard_report.output("notes/run.txt"), "w") as file:
    file.write(f"rate {given.rate}")
"""
WITH_PACKAGE = """
import argparse

import tyscores
import trainyard_report

parser = argparse.ArgumentParser()
parser.add_argument("--factor", type=float, default=1.0, help="of the score")
factor = parser.parse_args().factor
for step in range(1, 4):
    trainyard_report.report(step, score=tyscores.score(factor, step))
"""


def test_a_script_is_searched_over_its_arguments_and_its_model_is_served(
    installation: RunningYard, cast: Cast
) -> None:
    ada, page = cast.ada, cast.ada.page
    ada.go("Code", "New version")
    file: FilePayload = {"name": "train.py", "mimeType": "text/x-python", "buffer": SCRIPT.encode()}
    page.get_by_label("Files", exact=True).set_input_files(file)
    ada.send("Store")
    ada.follow(page.get_by_role("link", name="Start an experiment"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Run a script")
    # Nothing is searched yet.
    expect(page.get_by_label("Objective")).to_be_hidden()
    rate = page.get_by_role("group", name="Argument 1, rate")
    rate.get_by_label("Use").select_option(label="search values")
    rate.get_by_label("Values").fill("0.0, 0.2")
    epochs = page.get_by_role("group", name="Argument 2, epochs")
    epochs.get_by_label("Use").select_option(label="one value")
    epochs.get_by_label("Value", exact=True).fill("30")
    page.get_by_label("Data", exact=True).select_option(label="iris v1")
    page.get_by_label("Objective").fill("accuracy")
    page.get_by_label("Direction").select_option(label="higher is better")
    page.get_by_label("Algorithm").select_option(value="grid")
    page.get_by_label("Steps of a full run").fill("30")
    page.get_by_label("Register as").fill("iris-script")
    ada.check_page("script-form")
    ada.send("Submit")
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed")
    ada.check_page("script-search")
    ada.tab("Artifacts")
    expect(page.get_by_role("main")).to_contain_text("trial-1/notes/run.txt")
    ada.check_page("script-artifacts")
    job = installation.job(int(page.url.partition("?")[0].rpartition("/")[2]))
    assert job["results"]["best_trial"]["values"] == {"rate": 0.2}
    curve = installation.ada.get(f"/jobs/{job['id']}/metrics", names="accuracy", trial=1)["series"]
    assert [len(series["points"]) for series in curve] == [30]
    installation.promote("iris-script", 1)
    served, answers = installation.predict("iris-script", [[5.1, 3.5, 1.4, 0.2]])
    assert served == 1
    assert answers[0].index(max(answers[0])) == 0


@needs_sandbox
def test_a_script_with_a_package_is_searched_and_shows_its_build_log(
    installation: RunningYard, cast: Cast, wheels: Path
) -> None:
    wheel(wheels, "tyscores", "2.1", code="def score(factor, step):\n    return factor * step\n")
    ada, page = cast.ada, cast.ada.page
    ada.go("Code", "New version")
    packed = zipped({"scores/train.py": WITH_PACKAGE, "scores/requirements.txt": "tyscores==2.1\n"})
    file: FilePayload = {"name": "scores.zip", "mimeType": "application/zip", "buffer": packed}
    page.get_by_label("Files", exact=True).set_input_files(file)
    ada.send("Store")
    expect(ada.card("Installed packages")).to_contain_text("They are installed before the first run")
    ada.follow(page.get_by_role("link", name="Start an experiment"))
    factor = page.get_by_role("group", name="Argument 1, factor")
    factor.get_by_label("Use").select_option(label="search values")
    factor.get_by_label("Values").fill("1.0, 3.0")
    page.get_by_label("Objective").fill("score")
    page.get_by_label("Direction").select_option(label="higher is better")
    page.get_by_label("Algorithm").select_option(value="grid")
    page.get_by_label("Steps of a full run").fill("3")
    ada.send("Submit")
    expect(page.locator(".ty-job-line .ty-state")).to_have_text("completed")
    job = installation.job(int(page.url.rpartition("/")[2]))
    assert job["results"]["best_trial"]["values"] == {"factor": 3.0}
    ada.go("Code", "scores")
    packages = ada.card("Installed packages")
    expect(packages.locator(".ty-state")).to_have_text("ready")
    built = packages.locator(".cd-built")
    built.get_by_text("1 package", exact=True).click()
    expect(built.get_by_text("tyscores 2.1", exact=True)).to_be_visible()
    expect(packages).to_contain_text("1 package for scripts")
    packages.get_by_text("Build log", exact=True).click()
    # By pip or by uv.
    expect(packages.get_by_label("Build log")).to_contain_text(re.compile("tyscores(-|==)2.1"))
    ada.check_page("script-packages")
