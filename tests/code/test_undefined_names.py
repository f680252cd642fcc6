"""Names that the code of users needs and does not define."""

from pathlib import Path

import pytest

from tests.code.making import read_files

ENTRY = "import keras\ndef build_model(hp):\n    units = hp.Int('units', 1, 4)\n"


def undefined_in(folder: Path, files: dict[str, str]) -> list[tuple[str, int | None, str]]:
    notices = read_files(folder, files).found.notices
    return [(each.path, each.line, each.message) for each in notices if "no line of the file" in each.message]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ENTRY}    return keras.layers.Dense(CLASSES)(units)\n", (4, "CLASSES, which build_model uses")),
        (ENTRY.replace("import keras", ""), None),
        (
            ENTRY.replace("import keras\n", "") + "    return keras.Input(3)\n",
            (3, "keras, which"),
        ),
        (
            "import keras\nclass Scale(keras.layers.Layer):\n    def call(self, x, by=BY):\n        ...\n",
            (3, "BY, which Scale uses"),
        ),
        (
            f"import os\nif 1:\n    {ENTRY.replace('\n', '\n    ')}    return WIDTH\n",
            (6, "WIDTH"),
        ),
    ],
)
def test_a_name_that_an_entry_uses_and_no_line_defines_is_named(
    tmp_path: Path, text: str, expected: tuple[int, str] | None
) -> None:
    found = undefined_in(tmp_path, {"model.py": text})
    assert len(found) == bool(expected)
    if expected:
        assert found[0][1] == expected[0] and f"defines {expected[1]}" in found[0][2]


def test_names_of_files_that_an_entry_imports_are_looked_at(tmp_path: Path) -> None:
    files = {
        "model.py": f"from blocks import block\n{ENTRY}    return block(units)\n",
        "blocks.py": "def block(units):\n    return np.ones(units)\n",
    }
    assert [(path, line) for path, line, _ in undefined_in(tmp_path, files)] == [("blocks.py", 2)]


@pytest.mark.parametrize(
    "body",
    [
        "    return [units for units in range(3) if LATER]\nLATER = 1\n",
        "    class Inner:\n        a = 1\n        b = a\n        def f(self):\n            super()\n"
        "    return Inner\n",
        "    global made\n    made = units\n    return made\n",
        "    return (lambda a, *b, c=1, **d: (a, b, c, d))(units), __file__, __name__, print\n",
        "    try:\n        return units\n    except ValueError as error:\n        print(error)\n",
        "    match units:\n        case {'a': a, **b}: return a, b\n        case [c, *d]: return c, d\n",
        "    def inner():\n        nonlocal units\n        return (last := units), last\n",
        "    return defined\ntry:\n    import defined\nexcept ImportError:\n    defined = None\n",
        "    return keras.any\nfrom keras.layers import *\n",
        "    return Dense(1)\nfrom keras.layers import *\n",
        "    return made_by_text\nexec('made_by_text = 1')\n",
        "    def of[T](x: T) -> T:\n        return x\n    return of\n",
    ],
)
def test_names_that_some_line_defines_are_not_named(tmp_path: Path, body: str) -> None:
    assert undefined_in(tmp_path, {"model.py": ENTRY + body}) == []


def test_annotations_that_are_not_executed_need_no_names(tmp_path: Path) -> None:
    text = "def build_model(hp: HyperParameters):\n    return hp.Int('units', 1, 4)\n"
    assert len(undefined_in(tmp_path, {"model.py": text})) == 1
    assert not undefined_in(tmp_path, {"model.py": f"from __future__ import annotations\n{text}"})
