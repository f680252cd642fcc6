"""Declarations of arguments are read as each library means them."""

from typing import Any

import pytest

from jobs.messages.script_command import command_of
from jobs.messages.script_values import ArgumentRefused
from jobs.spec.sections.script_model import ScriptModel
from workers.code_reader.scripts import declared_by_script

TRANSFORMERS = """
from dataclasses import dataclass, field
from typing import Literal, Optional
from transformers import HfArgumentParser

@dataclass
class Model:
    path: str
    use_bias: bool = True
    layers: list[int] = field(default_factory=lambda: [1, 2], metadata={"help": "sizes"})
    mode: Literal["a", "b"] = "a"
    rate: Optional[float] = None

parser = HfArgumentParser(CLASSES)
parsed = parser.parse_args_into_dataclasses()
"""
CLICK = """
import click

@click.command()
@click.option("--mode", type=click.Choice(["a", "b"], case_sensitive=False), default="a")
@click.option("--exact", type=click.Choice(["a", "b"]), default="a")
@click.option("--fast", is_flag=True, default=True)
@click.option("--name", default="x")
def main(**given): ...

if __name__ == "__main__":
    main()
"""
ABSL = """
from absl import app, flags
flags.DEFINE_enum("mode", "a", ["a", "b"], "help", case_sensitive=False)
flags.DEFINE_string("name", "x", "help")
if __name__ == "__main__":
    app.run(print)
"""
TYPER = """
import typer
def main(name: str = "x"): ...
typer.run(main)
"""
RANGES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--k", type=int, choices=range(1, 4))
parser.add_argument("--large", type=int, choices=range(0, 1000, 5))
parser.add_argument("--name", default="x")
args = parser.parse_args()
"""


def passed(text: str, args: dict[str, Any]) -> list[str]:
    declared = declared_by_script({"train.py": text}, "train.py")
    script = ScriptModel.model_validate(
        {"kind": "script", "digest": "a" * 64, "entry": "train.py", "args": args}
    )
    return command_of(script, declared.arguments, is_whole=not declared.note)[1:]


def test_fields_of_the_classes_of_a_parser_of_transformers_are_arguments() -> None:
    text = TRANSFORMERS.replace("CLASSES", "Model")
    args = {"path": "x", "use_bias": False, "layers": [3, 4], "mode": "b", "rate": 0.5}
    assert passed(text, args) == [
        "--path", "x", "--use_bias", "false", "--layers", "3", "4", "--mode", "b", "--rate", "0.5",
    ]  # fmt: skip
    with pytest.raises(ArgumentRefused, match="one of a, b"):
        passed(text, {"mode": "c"})
    note = declared_by_script(
        {"train.py": TRANSFORMERS.replace("CLASSES", "(Model, Other)")}, "train.py"
    ).note
    assert note.startswith("The fields of Other are arguments too")


def test_choices_of_click_and_absl_without_regard_to_case_take_both() -> None:
    assert passed(CLICK, {"mode": "B"}) == ["--mode", "B"]
    assert passed(ABSL, {"mode": "B"}) == ["--mode", "B"]
    with pytest.raises(ArgumentRefused, match="one of a, b"):
        passed(CLICK, {"exact": "B"})
    with pytest.raises(ArgumentRefused, match="one of a, b"):
        passed(CLICK, {"mode": "C"})


@pytest.mark.parametrize(
    ("text", "name", "advice"),
    [
        (CLICK, "fast", '"--flag/--no-flag", with its own name'),
        (CLICK, "name", '"--flag/--no-flag", with its own name'),
        (TYPER, "name", "typer.Option"),
        (ABSL, "name", "flags.DEFINE_boolean"),
        (RANGES, "name", "action=argparse.BooleanOptionalAction"),
    ],
)
def test_the_advice_for_a_switch_is_that_of_its_library(text: str, name: str, advice: str) -> None:
    with pytest.raises(ArgumentRefused, match=advice):
        passed(text, {name: False})


def test_choices_of_a_range_are_checked() -> None:
    assert passed(RANGES, {"k": 3, "large": 995}) == ["--k", "3", "--large", "995"]
    with pytest.raises(ArgumentRefused, match="one of 1, 2, 3, not 4"):
        passed(RANGES, {"k": 4})
    with pytest.raises(ArgumentRefused, match="one of 0, 5, …, 995, not 996"):
        passed(RANGES, {"large": 996})
