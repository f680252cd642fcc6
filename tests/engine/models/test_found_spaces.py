"""The dry build finds the space that KerasTuner has once it has built models with all kinds of values."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.code import ReadRequest, SentFile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.formats import keras_tuner as keras_tuner_format
from jobs.spec.sections.code_model import CodeModel
from tests import guide_models, own_code
from tests.engine.helpers import RecordingReport
from tests.engine.models.test_own_code import IRIS, dry_built, names
from workers.code_reader.reading import read
from workers.engine.errors import CodeFailure
from workers.engine.models.code_models import code_space
from workers.engine.models.code_models.code_build import build_code, hyperparameters_with
from workers.engine.models.own_code.entries import entry_of as entry_of_model
from workers.engine.models.own_code.in_use import using_code
from workers.engine.training.declarations import report_declared

DRAWN = 400
"""Builds with drawn values: values that are needed together occur many times."""


def entry_of(text: str) -> str:
    return "Net" if "class Net" in text else "build_model"


class NoModel:
    """Takes the calls of a build that is done only for its declarations."""

    def __getattr__(self, _: str) -> Any:
        return NoModel()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return NoModel()

    def __iter__(self) -> Any:
        return iter(())


def spaces_of_keras_tuner(text: str) -> dict[str, Any]:
    """Return KerasTuner's rows by name, after the declarations of many drawn builds."""
    import keras_tuner

    module: dict[str, Any] = {}
    exec(text, module)
    module["keras"] = module["layers"] = NoModel()
    net = module["Net"]() if "Net" in module else keras_tuner.HyperModel()
    build = net.build if "Net" in module else module["build_model"]
    known = keras_tuner.HyperParameters()
    net.declare_hyperparameters(known)
    generator = random.Random(0)
    for _ in range(DRAWN):
        drawn = known.copy()
        drawn.values = {}
        for declared in drawn.space:
            if drawn.is_active(declared):
                drawn.values[declared.name] = declared.random_sample(generator.randrange(10**9))
        model = build(drawn)
        if "Net" in module and type(net).fit is not keras_tuner.HyperModel.fit:
            net.fit(drawn, NoModel() if model is None else model, np.zeros((2, 4)), np.zeros(2))
        known.merge(drawn, overwrite=False)
    return {row["config"]["name"]: row for row in known.get_config()["space"]}


@pytest.mark.parametrize("text", guide_models.EXAMPLES.values(), ids=guide_models.EXAMPLES)
def test_the_space_is_that_of_keras_tuner(tmp_path: Path, text: str) -> None:
    text = guide_models.IMPORTS + text
    built = dry_built(tmp_path, text, entry_of(text))
    found = {row["config"]["name"]: row for row in keras_tuner_format.write(built.space)["space"]}
    theirs = spaces_of_keras_tuner(text)
    assert set(found) == set(theirs), built.notes
    for name, row in theirs.items():
        ours = {
            key: found[name]["config"].get(key) for key in ("conditions", "min_value", "max_value", "values")
        }
        kept = {key: row["config"].get(key) for key in ours}
        assert (found[name]["class_name"], ours) == (row["class_name"], kept)
    assert not built.notes


def test_a_name_in_two_scopes_is_one_row_with_both_conditions(tmp_path: Path) -> None:
    text = guide_models.IMPORTS + guide_models.ONE_NAME_IN_TWO_SCOPES + guide_models.DONE
    built = dry_built(tmp_path, text)
    assert names(built) == ["family", "units"]
    (condition,) = built.space[1].conditions()
    assert (condition.name, condition.in_) == ("family", ("mlp", "cnn"))
    with pytest.raises(CodeFailure, match="'units' twice, with different values"):
        dry_built(tmp_path / "other", text.replace("4, 8)", "4, 8 if name == 'mlp' else 16)"))


LOOP_OF_SCOPES = """
def build_model(hp):
    model = keras.Sequential()
    for i in range(hp.Int("layers", 2, 3)):
        with hp.conditional_scope("layers", list(range(i + 1, 4))):
            model.add(layers.Dense(hp.Int(f"units_{i}", 4, 8)))
    with hp.conditional_scope("layers", [7]):
        hp.Boolean("seven")
"""


def test_a_scope_may_name_values_that_its_parent_never_has(tmp_path: Path) -> None:
    built = dry_built(tmp_path, guide_models.IMPORTS + LOOP_OF_SCOPES + guide_models.DONE)
    when = {p.name: [condition.in_ for condition in p.conditions()] for p in built.space}
    assert when == {"layers": [], "units_0": [(2, 3)], "units_1": [(2, 3)], "units_2": [(3,)]}
    assert built.notes == ("'seven' is never used: 'layers' never has a value of [7]",)


def test_a_budget_that_is_spent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_space, "MAX_BUILDS", 5)
    built = dry_built(tmp_path, guide_models.IMPORTS + guide_models.EXAMPLES["nested loops"])
    assert built.builds == 5
    assert "after 5 builds, at most 5 in 120 s" in built.notes[0]


BEHIND_AN_IF = """
def build_model(hp):
    model = keras.Sequential()
    if hp.Choice("family", ["mlp", "cnn"]) == "mlp":
        for i in range(hp.Int("depth", 1, 2)):
            model.add(layers.Dense(hp.Int(f"units_{i}", 4, 8)))
    else:
        hp.Float("dropout", 0.0, 0.5)
"""


def test_what_the_code_does_not_ask_for_beside_a_value_is_known(tmp_path: Path) -> None:
    built = dry_built(tmp_path, guide_models.IMPORTS + BEHIND_AN_IF + guide_models.DONE)
    unasked = {(each.name, each.value): set(each.names) for each in built.unasked}
    assert unasked["family", "mlp"] == {"dropout"}
    assert unasked["family", "cnn"] == {"depth", "units_0", "units_1"}
    assert unasked["depth", 1] == {"units_1"}, "what another family asks for is known by the family"
    assert ("depth", 2) not in unasked
    assert all("family" not in names for names in unasked.values())


MANY_PAIRS = """
def build_model(hp):
    for name in ("act", "norm", "start", "way"):
        hp.Choice(name, [f"{name}{number}" for number in range(10)])
    if hp.Choice("kind", ["a", "b", "c"]) == "b":
        hp.Float("b_rate", 0.0, 0.5)
    return keras.Sequential()
"""


def test_a_value_that_was_seldom_built_is_not_said_to_switch_others_off() -> None:
    module: dict[str, Any] = {"keras": NoModel()}
    exec(MANY_PAIRS, module)
    explorer = code_space.SpaceExplorer(lambda: None)
    explorer.explore(module["build_model"])
    unasked = {(each.name, each.value): set(each.names) for each in explorer.unasked(explorer.space())}
    assert unasked == {("kind", "a"): {"b_rate"}, ("kind", "c"): {"b_rate"}}


def test_what_is_declared_beforehand_and_read_by_its_name_has_an_effect() -> None:
    def declare_and_build(hp: Any) -> None:
        hp.Int("units", 4, 8)
        build(hp)

    def build(hp: Any) -> None:
        if hp.Choice("kind", ["a", "b"]) == "b":
            hp.get("units")

    explorer = code_space.SpaceExplorer(lambda: None)
    explorer.explore(build, declare_and_build)
    assert explorer.unasked(explorer.space()) == ()


SPEC: dict[str, Any] = {
    "version": 1,
    "data": {"dataset": "iris"},
    "search": {
        "objective": {"metric": "val_loss", "direction": "min"},
        "space": [{"name": "units", "kind": "int", "min": 4, "max": 8}],
    },
}
UNKNOWN = """
def build_model(hp):
    model = keras.Sequential([layers.Dense(hp.Int("units", 4, 8))])
    if hp.Choice("kind", ["plain", "deep"], default="deep") == "deep":
        hp.Float("rate", 0.1, 0.5, step=0.1, default=0.2)
    hp.Choice("twice", ["a", "a"])
    with hp.conditional_scope("kind", ["plain"]):
        hp.Int("only_plain", 1, 2)
    with hp.conditional_scope("units", [6]):
        hp.Int("only_six", 1, 2)
"""


def trial_of(tmp_path: Path, text: str, units: int) -> RecordingReport:
    """Build a trial's model as its search does, and return its reports."""
    code = own_code.code_in(tmp_path, guide_models.IMPORTS + text + guide_models.DONE)
    model = {"kind": "code", "digest": code.digest, "entry": "build_model"}
    spec = ExperimentSpec.model_validate({**SPEC, "model": model})
    report = RecordingReport(tmp_path)
    assert isinstance(spec.model, CodeModel)
    with using_code(code):
        build = build_code(entry_of_model(spec.model), hyperparameters_with({"units": units}), IRIS)
        report_declared(report, spec, build.hyperparameters)
    return report


def test_a_trial_reports_the_hyperparameters_that_its_search_lacks(tmp_path: Path) -> None:
    report = trial_of(tmp_path, UNKNOWN, 4)
    (((rows, values, refused), _),) = report.of("declared")
    assert [row.name for row in rows] == ["kind", "rate", "only_plain", "only_six"]
    assert values == {"kind": "deep", "rate": 0.2}
    assert [(c.name, c.in_) for row in rows for c in row.conditions()] == [
        ("kind", ("plain",)),
        ("units", (6,)),
    ]
    assert list(refused) == ["twice"] and "'twice'" in refused["twice"]
    assert not report.of("warning")


def test_a_trial_of_a_whole_space_reports_nothing(tmp_path: Path) -> None:
    assert not trial_of(tmp_path, UNKNOWN[: UNKNOWN.index("    if hp")], 4).calls


def test_a_name_with_another_range_is_named(tmp_path: Path) -> None:
    text = UNKNOWN[: UNKNOWN.index("    if hp")].replace("4, 8)", "4, 6)")
    report = trial_of(tmp_path, text, 8)
    (((name, message), _),) = report.of("warning")
    assert name == "declared_with_other_values"
    assert "declares 'units' with other values than the search has, integers from 4 to 8" in message
    (((line,), _),) = report.of("log")
    assert "'units' with integers from 4 to 6" in line
    assert not report.of("declared")


def test_the_definitions_of_a_whole_guide_have_its_spaces(tmp_path: Path) -> None:
    sent = tmp_path / "guide"
    sent.write_text(guide_models.WHOLE_GUIDE)
    (tmp_path / "kept").mkdir()
    files = [SentFile(place=str(sent), path="model.py")]
    reading = read(ReadRequest(files=files, into=str(tmp_path / "kept"), definitions_only=True))
    assert [(entry.name, entry.note) for entry in reading.found.entries] == [
        ("build_model", ""),
        ("Tuned", ""),
    ]
    text = (tmp_path / "kept" / "0").read_text()
    assert names(dry_built(tmp_path / "a", text)) == ["layers", "units_0", "rate", "units_1"]
    assert names(dry_built(tmp_path / "b", text, "Tuned"))[-1] == "shuffle"
