"""The functions and classes that are found in code without executing it, and files that are refused."""

import dataclasses
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from jobs.messages.code import (
    MAX_FILES,
    MAX_RUNS,
    MAX_SHOWN_LINES,
    CodeEntry,
    Highlighted,
    HighlightRequest,
    ReadRequest,
    SentFile,
)
from tests.code.making import MODEL, link, read_files, tarred, zipped
from webapp.child_processes import inherited_environment
from workers.code_reader import files, highlighting, limits
from workers.code_reader.highlighting import highlight
from workers.system.archives import BadArchive

ROOT = Path(__file__).resolve().parents[2]


def entries(folder: Path, files: dict[str, str]) -> dict[str, CodeEntry]:
    return {entry.name: entry for entry in read_files(folder, files).found.entries}


def refusal(folder: Path, body: bytes, name: str = "code.zip") -> str:
    with pytest.raises(BadArchive) as refused:
        read_files(folder, {name: body})
    return str(refused.value)


def test_functions_classes_and_layers_are_found_with_their_arguments(tmp_path: Path) -> None:
    found = entries(tmp_path, {"model.py": MODEL})
    assert [(name, entry.kind, entry.line) for name, entry in found.items()] == [
        ("Doubled", "layer", 6), ("Net", "hypermodel", 11), ("build_model", "build_model", 22),
    ]  # fmt: skip
    assert found["Doubled"].registered == "shop>Doubled"
    assert found["Net"].methods == ["build", "fit"]
    arguments = [(each.name, each.default, each.annotation) for each in found["Net"].arguments]
    assert arguments == [("classes", None, "int"), ("wide", "False", None)]


def test_bases_are_found_through_other_files_and_other_names(tmp_path: Path) -> None:
    base = "from keras_tuner import HyperModel as HM\nclass Base(HM):\n    def __init__(self, units=8): ...\n"
    net = "from base import Base\nclass Mid(Base): ...\nclass Net(Mid):\n    def build(self, hp): ...\n"
    found = entries(tmp_path, {"base.py": base, "net.py": net})["Net"]
    assert (found.kind, found.methods, [each.name for each in found.arguments]) == (
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
    found = entries(tmp_path, {"model.py": f"{imports}\nclass Own({base}): ...\n"})
    assert [entry.kind for entry in found.values()] == ([kind] if kind else [])


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
for name in ("a", "b"):
    parser.add_argument(name)
if __name__ == "__main__":
    parser.parse_args()
"""
    script = entries(tmp_path, {"train.py": source})["train.py"]
    assert (script.kind, script.line) == ("script", 10)
    assert [(each.name, each.default, each.annotation) for each in script.arguments] == [
        ("data", None, None), ("out", "None", None), ("--epochs", "2 + 1", "int"), ("--size", None, None),
        ("--fast", "False", None),
    ]  # fmt: skip
    assert script.arguments[2].help == "how\N{REPLACEMENT CHARACTER} many", "no database accepts a NUL"
    assert script.arguments[3].choices == '["s", "l"]'
    assert script.note.startswith("1 argument(s)")


def test_the_arguments_that_are_kept_are_bounded(tmp_path: Path) -> None:
    many = ", ".join(f"a{number}=1" for number in range(150))
    source = "".join(f"@register_keras_serializable()\ndef f{number}({many}): ...\n" for number in range(12))
    found = read_files(tmp_path, {"model.py": source}).found.entries
    assert [(len(each.arguments), each.more_arguments) for each in found] == [(100, 50)] * 10 + [(0, 150)] * 2


def test_a_syntax_error_is_named_with_its_place_and_other_files_are_read(tmp_path: Path) -> None:
    found = read_files(tmp_path, {"bad.py": "x = 1\ny = (2\n", "model.py": MODEL}).found
    (problem,) = found.problems
    assert (problem.path, problem.line, problem.column) == ("bad.py", 2, 5)
    assert "never closed" in problem.message
    assert len(found.entries) == 3


def test_python_that_is_no_utf_8_is_kept_and_named(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"old.py": b"x = '\xe9'\n"})
    assert (reading.files[0].lines, reading.found.problems[0].message) == (
        None, "is not text in UTF-8: save it as UTF-8",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "wanted", "python"),
    [
        ("requirements.txt", "# us\na>=2  # b\n\n--pre\nx \\\n==1\n", ["a>=2", "--pre", "x  ==1"], None),
        ("pyproject.toml", '[project]\nrequires-python = ">3"\ndependencies = ["numpy"]\n', ["numpy"], ">3"),
    ],
)  # fmt: skip
def test_packages_are_found(
    tmp_path: Path, name: str, text: str, wanted: list[str], python: str | None
) -> None:
    packages = read_files(tmp_path, {"model.py": MODEL, name: text}).found.packages
    assert packages is not None
    assert (packages.path, packages.requirements, packages.python) == (name, wanted, python)


@pytest.mark.parametrize("text", ["[project", "[project]\ndependencies = 3\n", "a = " + "[" * 5000])
def test_a_damaged_pyproject_is_a_problem(tmp_path: Path, text: str) -> None:
    found = read_files(tmp_path, {"model.py": MODEL, "pyproject.toml": text}).found
    assert (found.packages, found.problems[0].path) == (None, "pyproject.toml")


def test_a_pyproject_about_a_tool_asks_for_no_packages(tmp_path: Path) -> None:
    found = read_files(tmp_path, {"model.py": MODEL, "pyproject.toml": "[tool.ruff]\n"}).found
    assert (found.packages, found.problems) == (None, [])


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_is_its_files_without_hidden_ones_and_the_folder_around_them(
    tmp_path: Path, pack: object
) -> None:
    files = {
        "shop/model.py": MODEL, "shop/layers/dense.py": "", "shop/.git/config": "x",
        "shop/vocabulary.bin": b"\0",
        "shop/__pycache__/model.cpython-313.pyc": b"\0", "__MACOSX/shop/._model.py": "x",
    }  # fmt: skip
    reading = read_files(tmp_path, {"code.zip": pack(files)})  # type: ignore[operator]
    assert [(file.path, file.lines) for file in reading.files] == [
        ("layers/dense.py", 0), ("model.py", 23), ("vocabulary.bin", None),
    ]  # fmt: skip
    assert reading.found.left_out == 3


def test_the_folder_of_a_package_stays(tmp_path: Path) -> None:
    files = {"shop/__init__.py": "", "shop/model.py": MODEL}
    assert [file.path for file in read_files(tmp_path, files).files] == list(files)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (zipped({"../model.py": MODEL}), "'../model.py' in the archive leads out of its folder"),
        (zipped({"/model.py": MODEL}), "'/model.py' in the archive has an absolute name"),
        (zipped({"C:\\model.py": MODEL}), "has an absolute name"),
        (tarred({}, link("model.py")), "'model.py' in the archive is a link"),
        (tarred({}, link("model.py", tarfile.LNKTYPE)), "'model.py' in the archive is a link"),
        (tarred({}, link("model.py", tarfile.CHRTYPE)), "'model.py' in the archive is a device"),
        (tarred({}, link("model.py", tarfile.FIFOTYPE)), "'model.py' in the archive is a device"),
        (zipped({"a/" * 21 + "model.py": MODEL}), "inside of more than 20 folders"),
        (zipped({"big.py": "#" * (2**21 + 1)}), "'big.py' in the archive has 2,097,153 bytes"),
        (zipped({f"{n}.py": "#" * 2**21 for n in range(11)}), "more than 20,971,520"),
        (zipped({f"{n}.py": "" for n in range(MAX_FILES + 1)}), "at most 500 files"),
        (zipped({"readme.md": "x"}), "there is no Python file"),
        (zipped({"a": "x", "a/b.py": ""}), "'a' is a file and a folder at once"),
        (b"PK\x03\x04 no archive", "is damaged"),
        (b"no archive", "is neither a zip"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_an_archive_is_refused_with_the_reason(tmp_path: Path, body: bytes, message: str) -> None:
    assert message in refusal(tmp_path, body)


def test_a_path_that_was_sent_twice_or_leads_outside_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, b"", "../model.py") == "'../model.py' leads out of its folder"
    with pytest.raises(BadArchive, match=r"'a/model\.py' is there twice"):
        read_files(tmp_path, {"a/model.py": "", "a\\model.py": ""})


def test_a_file_is_kept_under_a_number_and_not_under_its_name(tmp_path: Path) -> None:
    read_files(tmp_path, {"layers/dense.py": "x = 1\n"})
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["0"]


def run(request: ReadRequest | HighlightRequest) -> subprocess.CompletedProcess[bytes]:
    """Run the process as the web process does."""
    return subprocess.run(
        [sys.executable, "-m", "workers.code_reader"],
        input=request.model_dump_json().encode(),
        capture_output=True,
        cwd=ROOT,
        env=inherited_environment(),
        check=False,
    )


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "-" * 500_000 + "1",
        "x = " + "(" * 500_000,
        "a" + ".a" * 300_000,
        "x = " + "1+" * 100_000 + "1",
    ],
    ids=["signs", "parentheses", "attributes", "sums"],
)
def test_deep_nesting_ends_at_most_the_process_that_reads_it(tmp_path: Path, source: str) -> None:
    (tmp_path / "deep.py").write_text(source)
    sent = [SentFile(place=str(tmp_path / "deep.py"), path="deep.py")]
    done = run(ReadRequest(files=sent, into=str(tmp_path)))
    # Which of both depends on the stack of the machine: the parser may end the process.
    if done.returncode == 0:
        (problem,) = json.loads(done.stdout)["found"]["problems"]
        assert "nested" in problem["message"]
    else:
        assert done.returncode < 0
        assert not done.stdout


def test_code_that_would_act_when_imported_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'done')!r}).touch()\ndef build_model(hp): ...\n"
    )
    sent = [SentFile(place=str(tmp_path / "evil.py"), path="evil.py")]
    assert b"build_model" in run(ReadRequest(files=sent, into=str(tmp_path))).stdout
    assert not (tmp_path / "done").exists()


def highlighted(folder: Path, text: str, name: str = "model.py") -> Highlighted:
    (folder / "source").write_bytes(text.encode())
    return highlight(HighlightRequest(place=str(folder / "source"), path=name))


@pytest.mark.parametrize(
    "text", [MODEL, "", "\n\n", "\n# x\n\n\n", "x = 1\r\ny = 2\rz\f = 3", "'''\na\n'''\n"]
)
@pytest.mark.parametrize("name", ["model.py", "pyproject.toml", "notes.txt"])
def test_the_lines_are_those_of_the_file(tmp_path: Path, text: str, name: str) -> None:
    lines = ["".join(run for _, run in line) for line in highlighted(tmp_path, text, name).lines]
    expected = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    assert lines == expected


def test_words_of_python_have_classes(tmp_path: Path) -> None:
    (line,) = highlighted(tmp_path, "def build_model(hp): return 'a'").lines
    assert {("k", "def"), ("nf", "build_model"), ("s1", "'a'")} <= set(line)


def test_the_lines_that_are_shown_are_bounded(tmp_path: Path) -> None:
    shown = highlighted(tmp_path, "\n" * 524_288)
    assert (len(shown.lines), shown.is_cut) == (MAX_SHOWN_LINES, True)
    assert not highlighted(tmp_path, "\n" * MAX_SHOWN_LINES).is_cut


def test_the_parts_with_styles_are_bounded(tmp_path: Path) -> None:
    text = "x = " + "1+" * 200_000 + "1"
    shown = highlighted(tmp_path, text)
    assert sum(map(len, shown.lines)) <= MAX_RUNS + 1
    assert ("".join(run for _, run in shown.lines[0]), "too many parts" in shown.note) == (text, True)


def test_characters_that_change_the_direction_are_shown_by_their_numbers(tmp_path: Path) -> None:
    (line,) = highlighted(tmp_path, "x = 1 # \u202e\u2066").lines
    assert "".join(run for _, run in line) == "x = 1 # ⟨U+202E⟩⟨U+2066⟩"


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_hidden_files_of_any_size_do_not_count(tmp_path: Path, pack: object) -> None:
    files = {"shop/.git/pack": bytes(30 * 2**20), "shop/model.py": MODEL}
    reading = read_files(tmp_path, {"code.zip": pack(files)})  # type: ignore[operator]
    assert ([file.path for file in reading.files], reading.found.left_out) == (["model.py"], 1)


def test_an_unpacked_tar_is_bounded_with_its_hidden_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LIMITS", dataclasses.replace(files.LIMITS, stream_bytes=25 * 2**20))
    # The last entry makes the reader pass the hidden one.
    body = tarred({".git/pack": bytes(60 * 2**20), "model.py": MODEL})
    assert "unpacks to more than" in refusal(tmp_path, body)


@pytest.mark.parametrize(
    ("path", "message"),
    [(".", "has no name"), ("", "has no name"), ("a\u202eb.py", "cannot be printed")],
)
def test_a_path_without_a_visible_name_is_refused(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(BadArchive, match=message):
        read_files(tmp_path, {path: "x", "model.py": ""})
    if path:
        assert message in refusal(tmp_path, tarred({path: "x", "model.py": ""}))


def test_the_process_limits_itself_for_good() -> None:
    code = (
        "import resource, os; from workers.code_reader import limits; limits.apply();"
        "print(*(resource.getrlimit(k)[i] for i in (0, 1) for k in"
        " (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True).stdout
    most = [limits.CPU_SECONDS, limits.MEMORY_BYTES, limits.FILE_BYTES, 0]
    assert [int(each) for each in printed.split()] == most * 2


def test_what_takes_too_long_is_shown_without_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(highlighting, "SECONDS", 0.02)
    text = "x = [1, 2, 3]  # y\n" * 4_000
    shown = highlighted(tmp_path, text)
    assert ("took too long" in shown.note, len(shown.lines)) == (True, 4_000)
    assert {"".join(run for _, run in line) for line in shown.lines} == {"x = [1, 2, 3]  # y"}
