"""The functions that build models are found by their arguments, whatever their names."""

from pathlib import Path

import pytest

from tests.code.making import read_files

MAIN = "import functools\nimport keras_tuner as kt\n"


def builders(folder: Path, text: str) -> dict[str, str]:
    """Return the entries that build models, with what prevents their use."""
    folder.mkdir(exist_ok=True)
    entries = read_files(folder, {"model.py": MAIN + text}).found.entries
    return {entry.name: entry.note for entry in entries if entry.kind in ("build_model", "hypermodel")}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def model_builder(hp): ...", ["model_builder"]),
        ("def make(p):\n    return p.Int('units', 1, 2)", ["make"]),
        ("def make(p):\n    with p.conditional_scope('a', [1]): ...", ["make"]),
        ("def make(p: kt.HyperParameters): ...", ["make"]),
        ("def make(p: 'kt.HyperParameters'): ...", ["make"]),
        ("def make(hp, classes=10, *, wide=False): ...", ["make"]),
        ("make = lambda hp: build(hp, 3)", ["make"]),
        ("make: object = lambda p: p.Choice('a', [1])", ["make"]),
        ("@decorated\ndef make(hp): ...", ["make"]),
        ("def one(hp): ...\ndef two(hp): ...", ["one", "two"]),
        ("if True:\n    def make(hp): ...\nelse:\n    x = 1", ["make"]),
        ("try:\n    import a\nexcept ImportError:\n    def make(hp): ...", ["make"]),
        ("class Maker:\n    def build(self, hp): ...", ["Maker.build"]),
        ("class Maker:\n    def model(self, p):\n        p.Int('a', 1, 2)", ["Maker.model"]),
        ("class Maker:\n    @staticmethod\n    def model(hp): ...", ["Maker.model"]),
        ("def outer(n):\n    def inner(hp): ...\n    return inner\nmake = outer(3)", ["make"]),
        ("def outer(n):\n    return lambda hp: n\nmake = outer(3)", ["make"]),
        ("def full(n, hp): ...\nmake = functools.partial(full, 3)", ["full", "make"]),
        ("def full(hp, n): ...\nmake = functools.partial(full, n=3)", ["full", "make"]),
        ("net = kt.applications.HyperResNet(input_shape=(8, 8, 3), classes=10)", ["net"]),
        ("class Maker:\n    def __init__(self, hp): ...\ndef make(hp): ...", ["make"]),
        ("def train(config): config.get('units')", []),
        ("def make(p):\n    return other.Int('units')", []),
        ("if __name__ == '__main__':\n    def make(hp): ...", []),
    ],
)
def test_each_function_that_takes_hyperparameters_is_an_entry(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    assert list(builders(tmp_path, f"{text}\n")) == names


def test_a_function_that_needs_more_says_so_unless_another_one_calls_it(tmp_path: Path) -> None:
    assert builders(tmp_path, "def make(hp, classes): ...\n") == {
        "make": "It must be callable with one argument: make(hp)."
    }
    assert builders(tmp_path / "a", "async def make(hp): ...\n")["make"].startswith("It is async")
    helper = "def block(x, hp): ...\ndef make(hp):\n    return block(1, hp)\n"
    assert builders(tmp_path / "b", helper) == {"make": ""}


def test_a_helper_is_named_if_only_a_lambda_without_a_name_can_call_it(tmp_path: Path) -> None:
    search = "tuner = kt.RandomSearch(lambda hp: make(hp, 3), objective='val_loss')\n"
    (note,) = builders(tmp_path, f"def make(hp, n): ...\n{search}").values()
    assert note.endswith("Assign the lambda or the partial that gives the other arguments to a name.")


def test_of_one_name_the_last_definition_counts(tmp_path: Path) -> None:
    text = "def make(hp, n): ...\nclass A(kt.HyperModel): ...\ndef make(hp): ...\n"
    text += "class A(kt.HyperModel):\n    def build(self, hp): ...\n"
    assert builders(tmp_path, text) == {"make": "", "A": ""}


def test_code_without_any_entry_says_what_was_looked_for(tmp_path: Path) -> None:
    (notice,) = read_files(tmp_path, {"model.py": "def make(units): ...\n"}).found.notices
    assert notice.path == "model.py"
    assert "a function that takes hp, or calls Int, Float, Choice, Boolean" in notice.message
    other = tmp_path / "other"
    other.mkdir()
    assert not read_files(other, {"model.py": "def make(hp): ...\n"}).found.notices
