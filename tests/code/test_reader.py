"""The functions and classes that are found in code without executing it, and files that are refused."""

from pathlib import Path

import pytest

from jobs.messages.code import (
    CodeEntry,
)
from jobs.messages.script_values import literal
from tests.code.making import MODEL, read_files


def entries(folder: Path, files: dict[str, str]) -> dict[str, CodeEntry]:
    return {entry.name: entry for entry in read_files(folder, files).found.entries}


def test_functions_classes_and_layers_are_found_with_their_arguments(tmp_path: Path) -> None:
    by_name = entries(tmp_path, {"model.py": MODEL})
    assert [(name, entry.kind, entry.line) for name, entry in by_name.items()] == [
        ("Doubled", "layer", 6), ("Net", "hypermodel", 11), ("build_model", "build_model", 22),
    ]  # fmt: skip
    assert by_name["Doubled"].registered == "shop>Doubled"
    assert by_name["Net"].methods == ["build", "fit"]
    arguments = [
        (argument.name, argument.default, argument.annotation) for argument in by_name["Net"].arguments
    ]
    assert arguments == [("classes", None, "int"), ("wide", "False", None)]


def test_bases_are_found_through_other_files_and_other_names(tmp_path: Path) -> None:
    base = "from keras_tuner import HyperModel as HM\nclass Base(HM):\n    def __init__(self, units=8): ...\n"
    net = "from base import Base\nclass Mid(Base): ...\nclass Net(Mid):\n    def build(self, hp): ...\n"
    net_class = entries(tmp_path, {"base.py": base, "net.py": net})["Net"]
    assert (net_class.kind, net_class.methods, [argument.name for argument in net_class.arguments]) == (
        "hypermodel", ["build"], ["units"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("imports", "base", "kind"),
    [
        ("import keras", "keras.layers.Dense", "layer"),
        ("from keras import layers as L", "L.Conv2D", "layer"),
        ("from keras.metrics import MeanMetricWrapper as M", "M", "metric"),
        ("import tensorflow as tf", "tf.keras.losses.MeanSquaredError", "loss"),
        ("from tensorflow.keras import Sequential", "Sequential", "model"),
        ("import keras", "keras.Model", "model"),
        ("import keras", "keras.src.layers.core.dense.Dense", "layer"),
        ("import keras", "keras.optimizers.Adam", "object"),
        ("import keras_tuner as kt", "kt.applications.HyperResNet", "hypermodel"),
        ("import keras", "keras.callbacks.Callback", None),
        ("import kerasx", "kerasx.layers.Dense", None),
        ("from mine import Dense", "Dense", None),
    ],
)
def test_a_class_has_the_kind_of_the_module_of_its_base(
    tmp_path: Path, imports: str, base: str, kind: str | None
) -> None:
    by_name = entries(tmp_path, {"model.py": f"{imports}\nclass Own({base}): ...\n"})
    assert [entry.kind for entry in by_name.values()] == ([kind] if kind else [])


def test_a_base_is_looked_for_in_its_own_file_and_then_by_the_imports(tmp_path: Path) -> None:
    sent = {
        "a.py": "import keras\nclass Base(keras.Layer): ...\n",
        "b.py": "import keras\nclass Base(keras.metrics.Mean): ...\nclass Own(Base): ...\n",
        "c.py": "from b import Base\nclass ByName(Base): ...\n",
        "shop/__init__.py": "from .parts import Base\n",
        "shop/parts.py": "import keras\nclass Base(keras.losses.Loss): ...\n",
        "shop/deep/d.py": "from .. import parts\nclass ByDots(parts.Base): ...\n",
        "d.py": "import shop\nclass Again(shop.Base): ...\n",
        "e.py": "from keras.layers import Dense\nclass Dense(Dense): ...\n",
        "f.py": "from a import *\nclass ByStar(Base): ...\n",
        "layers.py": "class Dense: ...\n",
        "g.py": "import keras\nclass Real(keras.layers.Dense): ...\n",
    }
    kinds = {name: entry.kind for name, entry in entries(tmp_path, sent).items() if name != "Base"}
    assert kinds == {
        "Own": "metric", "ByName": "metric", "ByDots": "loss", "Again": "loss", "Dense": "layer",
        "ByStar": "layer", "Real": "layer",
    }  # fmt: skip


def test_what_runs_on_import_alone_is_no_script(tmp_path: Path) -> None:
    assert not entries(tmp_path, {"model.py": 'if __name__ != "__main__":\n    x = 1\n'})


def test_a_class_that_inherits_from_itself_ends(tmp_path: Path) -> None:
    source = "class A(B): ...\nclass B(A): ...\ndef build_model(hp): ...\n"
    assert list(entries(tmp_path, {"model.py": source})) == ["build_model"]


def test_a_function_that_cannot_be_called_says_why(tmp_path: Path) -> None:
    source = "def build_model(): ...\ndef load_data(split, path): ...\nasync def preprocess(x): ...\n"
    notes = {name: entry.note for name, entry in entries(tmp_path, {"model.py": source}).items()}
    assert notes["build_model"] == "It must be callable with one argument: build_model(hp)."
    assert "load_data(split)" in notes["load_data"]
    other = tmp_path / "other"
    other.mkdir()
    without = entries(other, {"model.py": "def load_data(): ...\n"})
    assert not without["load_data"].note, "it may return all parts at once"
    assert "async" in notes["preprocess"]


def test_a_hypermodel_without_build_says_so(tmp_path: Path) -> None:
    source = "import keras_tuner as kt\nclass Net(kt.HyperModel): ...\n"
    assert entries(tmp_path, {"model.py": source})["Net"].note == "It has no method build(self, hp)."


def test_the_arguments_of_a_script_are_found(tmp_path: Path) -> None:
    source = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("out", nargs="?")
parser.add_argument("-e", "--epochs", type=int, default=2 + 1, help="how\\x00 many")
parser.add_argument("--size", choices=["s", "l"], required=True)
parser.add_argument("--fast", action="store_true")
for name in open("names"):
    parser.add_argument(name)
if __name__ == "__main__":
    parser.parse_args()
"""
    script = entries(tmp_path, {"train.py": source})["train.py"]
    assert (script.kind, script.line) == ("script", 10)
    assert [(argument.name, argument.default, argument.annotation) for argument in script.arguments] == [
        ("data", None, None), ("out", "None", None), ("--epochs", "2 + 1", "int"), ("--size", None, None),
        ("--fast", "False", None),
    ]  # fmt: skip
    assert script.arguments[2].help == "how\N{REPLACEMENT CHARACTER} many", "no database accepts a NUL"
    assert script.arguments[3].choices == '["s", "l"]'
    assert "shows the arguments of line 9: add them by hand" in script.note


def test_the_arguments_that_are_kept_are_bounded(tmp_path: Path) -> None:
    many = ", ".join(f"a{number}=1" for number in range(150))
    source = "".join(f"@register_keras_serializable()\ndef f{number}({many}): ...\n" for number in range(12))
    listed = read_files(tmp_path, {"model.py": source}).found.entries
    assert [(len(entry.arguments), entry.more_arguments) for entry in listed] == [(100, 50)] * 10 + [
        (0, 150)
    ] * 2


def test_a_syntax_error_is_named_with_its_place_and_other_files_are_read(tmp_path: Path) -> None:
    findings = read_files(tmp_path, {"bad.py": "x = 1\ny = (2\n", "model.py": MODEL}).found
    (problem,) = findings.problems
    assert (problem.path, problem.line, problem.column) == ("bad.py", 2, 5)
    assert "never closed" in problem.message
    assert len(findings.entries) == 3


def test_python_that_is_no_utf_8_is_kept_and_named(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"old.py": b"x = '\xe9'\n"})
    assert (reading.files[0].lines, reading.found.problems[0].message) == (
        None, "is not text in UTF-8: save it as UTF-8",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "requirements", "python"),
    [
        ("requirements.txt", "# us\na>=2  # b\n\n--pre\nx \\\n==1\n", ["a>=2", "--pre", "x  ==1"], None),
        ("pyproject.toml", '[project]\nrequires-python = ">3"\ndependencies = ["numpy"]\n', ["numpy"], ">3"),
    ],
)  # fmt: skip
def test_packages_are_found(
    tmp_path: Path, name: str, text: str, requirements: list[str], python: str | None
) -> None:
    packages = read_files(tmp_path, {"model.py": MODEL, name: text}).found.packages
    assert packages is not None
    assert (packages.path, packages.requirements, packages.python) == (name, requirements, python)


@pytest.mark.parametrize("text", ["[project", "[project]\ndependencies = 3\n", "a = " + "[" * 5000])
def test_a_damaged_pyproject_is_a_problem(tmp_path: Path, text: str) -> None:
    findings = read_files(tmp_path, {"model.py": MODEL, "pyproject.toml": text}).found
    assert (findings.packages, findings.problems[0].path) == (None, "pyproject.toml")


def test_a_pyproject_about_a_tool_asks_for_no_packages(tmp_path: Path) -> None:
    findings = read_files(tmp_path, {"model.py": MODEL, "pyproject.toml": "[tool.ruff]\n"}).found
    assert (findings.packages, findings.problems) == (None, [])


@pytest.mark.parametrize("library", ["click", "typer"])
def test_all_names_of_many_commands_are_kept(tmp_path: Path, library: str) -> None:
    group = {"click": "@click.group()\ndef cli(): ...\n", "typer": "cli = typer.Typer()\n"}[library]
    names = [f"command-number-{number}" for number in range(15)]
    commands = "".join(f"@cli.command()\ndef {name.replace('-', '_')}(): ...\n" for name in names)
    text = f"import {library}\n{group}{commands}if __name__ == '__main__':\n    cli()\n"
    (entry,) = read_files(tmp_path, {"train.py": text}).found.entries
    (choice,) = [argument for argument in entry.arguments if argument.action == "command"]
    assert literal(choice.choices) == names
