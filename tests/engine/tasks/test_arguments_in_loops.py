"""Arguments that a script declares in loops and helper functions arrive as they are recorded."""

from pathlib import Path
from typing import Any

import pytest

from tests.engine.making import ArtifactReport
from tests.engine.tasks.test_script_arguments import REPORTED, run
from workers.engine.errors import ProgramFailed

HEAD = """
import argparse, json, os
import dataclasses
from dataclasses import asdict, dataclass, field, fields
"""
CONFIG = """
@dataclass
class Base:
    seed: int = 0

@dataclass
class Config(Base):
    rate: float = 0.1
    use_bias: bool = True
    name: str = field(default="a", metadata={"help": "of the run"})

parser = argparse.ArgumentParser()
"""
READ = "\nreceived = vars(parser.parse_args())\n"
SCRIPTS = {
    "the dict of an object": CONFIG
    + """
for k, v in Config().__dict__.items():
    parser.add_argument("--" + k, type=type(v), default=v)
""",
    "vars": CONFIG
    + """
config = Config()
for k, v in vars(config).items():
    parser.add_argument(f"--{k}", type=type(v), default=v)
""",
    "fields": CONFIG
    + """
for f in fields(Config):
    if f.type is bool:
        parser.add_argument("--" + f.name, action=argparse.BooleanOptionalAction, default=f.default)
    else:
        parser.add_argument("--" + f.name, type=f.type, default=f.default, help=f.metadata.get("help"))
""",
    "fields by their names": CONFIG
    + """
for name, f in Config.__dataclass_fields__.items():
    parser.add_argument("--{}".format(name), type=f.type, default=f.default)
""",
    "a dict of defaults": """
def str2bool(text):
    return text.lower() in ("yes", "true", "1")

def defaults():
    return dict(seed=0, rate=0.1, use_bias=True, name="a")

def add_all(target, values):
    for k, v in values.items():
        kind = type(v)
        if v is None:
            kind = str
        elif isinstance(v, bool):
            kind = str2bool
        target.add_argument(f"--{k}", default=v, type=kind)

parser = argparse.ArgumentParser()
add_all(parser, defaults())
""",
    "a list of tuples": """
OPTIONS = [("seed", int, 0), ("rate", float, 0.1), ("use_bias", bool, True), ("name", str, "a")]
parser = argparse.ArgumentParser()
for number, (name, kind, default) in enumerate(OPTIONS):
    parser.add_argument("--%s" % name, type=kind, default=default)
""",
    "a dict of settings": """
SPEC = {
    "--seed": {"type": int, "default": 0},
    "--rate": dict(type=float, default=0.1),
    "--use-bias": {"action": argparse.BooleanOptionalAction, "default": True},
    "--name": {"default": "a"},
}
parser = argparse.ArgumentParser()
for flag, settings in SPEC.items():
    parser.add_argument(flag, **settings)
""",
    "a helper": """
parser = argparse.ArgumentParser()
def add(name, default):
    if type(default) == bool:
        parser.add_argument("--" + name, action="store_" + str(not default).lower())
        return
    parser.add_argument("--" + name, type=type(default), default=default)
for name in ("seed",):
    add(name, 0)
add("rate", 0.1)
add(name="use_bias", default=True)
add("name", "a")
""",
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("use_bias", [True, False])
def test_each_arrives_as_it_is_recorded(tmp_path: Path, text: str, use_bias: bool) -> None:
    args = {"rate": 0.5, "use_bias": use_bias, "seed": 3, "name": "b"}
    assert run(tmp_path, {"train.py": HEAD + text + READ + REPORTED}, args) == args


@pytest.mark.parametrize("value", ["False", "false", "0", 0])
def test_a_text_that_bool_reads_as_true_is_refused(tmp_path: Path, value: Any) -> None:
    text = HEAD + SCRIPTS["vars"] + READ + REPORTED
    with pytest.raises(ProgramFailed, match="as every text but the empty one; give true or false"):
        run(tmp_path, {"train.py": text}, {"use_bias": value})


DYNAMIC = (
    HEAD
    + """
import sys
values = json.loads('{"use_bias": true}')
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
for k, v in values.items():
    parser.add_argument("--" + k, type=type(v), default=v)
received = vars(parser.parse_known_args()[0])
"""
)


def test_a_false_that_may_be_read_as_true_is_refused_or_warned_of(tmp_path: Path) -> None:
    files = {"train.py": DYNAMIC + REPORTED}
    with pytest.raises(ProgramFailed, match='"False" and "false" count as true there'):
        run(tmp_path, files, {"use_bias": False})
    report = ArtifactReport(tmp_path)
    # The command passes the text, and the script decides its meaning.
    assert run(tmp_path, files, {"use_bias": "False"}, report=report)["use_bias"] is True
    assert any("the text 'False'" in message for message in report.messages)


def test_a_script_that_passes_over_an_argument_is_named(tmp_path: Path) -> None:
    report = ArtifactReport(tmp_path)
    run(tmp_path, {"train.py": DYNAMIC + REPORTED}, {"sed": 3}, report=report)
    assert any("(is 'seed' meant?)" in message for message in report.messages)
