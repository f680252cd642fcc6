"""A model format is a table entry and an engine module: no other file names one."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from jobs.spec.exports import DEFAULT_QUANTIZATION, EXPORTS, STORED, ExportFormat
from jobs.spec.number_formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("jobs", "transport", "webapp", "workers")
TABLE = ("jobs/spec/exports.py", "workers/engine/exports/")
NO_SOURCES = ("jobs/migrations/", "webapp/static/vendor/")
ALLOWED = {
    "jobs/model_formats.py": "explains how files of other tools are converted",
    "jobs/spec/checks/fine_tuning.py": "names the types of whole numbers of variables, not files",
    "workers/confinement/forking/interpreter.py": "names the folder of Keras' settings",
    "workers/model_process/dtypes.py": "names the types of tensors, not files",
}
"""Files that may contain the name or suffix of a format, with the reason."""

# The others are the names of number formats too, of which many files write.
FILE_FORMATS = [name for name in EXPORTS if name not in FORMATS]
NAMES = re.compile(rf"\b(?:{'|'.join(map(re.escape, FILE_FORMATS))})\b")
# A suffix between two words, such as `tensorflow.keras.layers`, is a part of the name of a module.
SUFFIXES = [
    re.compile(rf"(?<!\w){re.escape(entry.suffix)}\b|\w{re.escape(entry.suffix)}\b(?!\.)")
    for entry in EXPORTS.values()
]


def names_a_format(text: str) -> bool:
    return any(pattern.search(text) for pattern in (NAMES, *SUFFIXES))


def texts_of(source: str) -> Iterator[str]:
    """Yield a module's texts, without docstrings and descriptions of constants."""
    tree = ast.parse(source)
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.value


@cache
def naming_files() -> dict[str, list[str]]:
    """Return the texts that name a format, by file."""
    python = [
        path for room in ("jobs", "transport", "webapp", "workers") for path in (ROOT / room).rglob("*.py")
    ]
    others = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "webapp/static/js").rglob("*.js")]
    texts = {path: list(texts_of(path.read_text("utf-8"))) for path in (*python, ROOT / "manage.py")}
    texts |= {path: path.read_text("utf-8").splitlines() for path in others}
    hits = {
        str(path.relative_to(ROOT)): [line for line in lines if names_a_format(line)]
        for path, lines in texts.items()
    }
    return {
        name: lines for name, lines in hits.items() if lines and not name.startswith((*TABLE, *NO_SOURCES))
    }


def test_a_name_and_a_suffix_are_found_in_texts_alone() -> None:
    source = 'def f():\n    """A .keras file of int8."""\n    return "model.keras", "to int8", "uint8"'
    assert [text for text in texts_of(source) if names_a_format(text)] == ["model.keras", "to int8"]
    assert not names_a_format("tensorflow.keras.layers") and not names_a_format("tf.keras.")
    assert names_a_format("save it as .keras.") and names_a_format("A .keras archive")


def test_only_the_table_and_the_engines_modules_name_a_format() -> None:
    assert not {name: lines for name, lines in naming_files().items() if name not in ALLOWED}


def test_every_exception_is_still_one() -> None:
    assert ALLOWED.keys() <= naming_files().keys()


@pytest.mark.parametrize("entry", EXPORTS.values(), ids=list(EXPORTS))
def test_a_format_has_a_module_with_the_same_function(entry: ExportFormat) -> None:
    module, function = entry.writer.split(":")
    file = ROOT / f"{module.replace('.', '/')}.py"
    assert file.parent == ROOT / "workers/engine/exports"
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    (writer,) = (node for node in functions if node.name == function)
    assert ast.unparse(writer.args) == "source: ExportSource, path: Path, options: Frozen | None"
    assert writer.returns is not None and ast.unparse(writer.returns) == "ExportedFile"
    assert entry.label and entry.help and entry.runs_in and entry.suffix.startswith(".")


def test_no_two_formats_write_the_same_file() -> None:
    assert len({entry.file_name() for entry in EXPORTS.values()}) == len(EXPORTS)


def test_a_quantized_model_can_be_stored() -> None:
    quantized = [entry for entry in EXPORTS.values() if entry.quantizes]
    assert {entry.suffix for entry in quantized} == {STORED.suffix}
    assert DEFAULT_QUANTIZATION in quantized and not STORED.quantizes
