"""A script's parser gets the values that the experiment records: each script runs as the engine starts it."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.messages.sandbox import Level
from jobs.messages.task import OwnCode, OwnCodeFile
from jobs.messages.training import TrainTask
from tests.engine.making import ArtifactReport
from workers.engine.errors import ProgramFailed
from workers.engine.tasks import script as scripts

REPORTED = """
print(json.dumps({"step": 1, "metrics": {"loss": 0.5}}))
with open(os.path.join(os.environ["TRAINYARD_OUTPUT"], "received.json"), "w") as file:
    json.dump(received, file, default=str)
"""
PARSER = "import argparse, json, os\nparser = argparse.ArgumentParser()\nadd = parser.add_argument\n"
READ = "\nreceived = vars(parser.parse_args())\n"


def run(
    folder: Path,
    files: dict[str, str],
    args: dict[str, Any],
    entry: str = "train.py",
    report: ArtifactReport | None = None,
) -> Any:
    """Run a script once, and return the values that it received."""
    stored = []
    for number, (path, text) in enumerate(files.items()):
        place = folder / f"stored-{number}"
        place.write_text(text)
        stored.append(OwnCodeFile(path=path, place=str(place)))
    digest = f"{abs(hash(str(sorted(files.items())))):064x}"[:64]
    task = TrainTask(
        folder=str(folder),
        code=OwnCode(digest=digest, files=tuple(stored), minimum=Level.PROCESS, network=False),
        spec={"model": {"kind": "script", "digest": "a" * 64, "entry": entry, "args": args}},
        dataset=None,
        retrain=None,
        objective={"metric": "loss", "direction": "min"},
        model_name="m",
    )
    scripts.train(task, report or ArtifactReport(folder))
    return json.loads((folder / "run" / "output" / "received.json").read_text())


def received_by_argparse(folder: Path, declared: str, args: dict[str, Any]) -> Any:
    lines = "\n".join(f"parser.add_argument({line})" for line in declared.strip().splitlines())
    return run(folder, {"train.py": f"{PARSER}{FUNCTIONS}{lines}{READ}{REPORTED}"}, args)


FUNCTIONS = """
from argparse import BooleanOptionalAction as Switch

N = 2

def str2bool(text):
    if text.lower() in ("yes", "true", "t", "1"):
        return True
    if text.lower() in ("no", "false", "f", "0"):
        return False
    raise argparse.ArgumentTypeError("a boolean is needed")

exact = lambda text: {"True": True, "False": False}[text]
"""

BOOLEANS = {
    "BooleanOptionalAction": '"--cache", action=argparse.BooleanOptionalAction, default=True',
    "BooleanOptionalAction without default": '"--cache", action=argparse.BooleanOptionalAction',
    "store_true": '"--cache", action="store_true"',
    "store_false": '"--cache", action="store_false"',
    "store_false of another name": '"--no-cache", action="store_false", dest="cache"',
    "str2bool": '"--cache", type=str2bool, default=True',
    "str2bool that may be alone": '"--cache", type=str2bool, nargs="?", const=True, default=False',
    "exact words": '"--cache", type=exact',
    "a lambda": '"--cache", type=lambda text: text == "yes"',
    "json": '"--cache", type=json.loads',
    "bool": '"--cache", type=bool, default=True',
    "int": '"--cache", type=int, default=1',
    "alone": '"--cache", nargs="?", const=True, default=False',
}


@pytest.mark.parametrize("declared", BOOLEANS.values(), ids=BOOLEANS)
@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_arrives_as_it_is_recorded(tmp_path: Path, declared: str, value: bool) -> None:
    received = received_by_argparse(tmp_path, declared, {"cache": value})["cache"]
    # An int receives 1 and 0.
    assert received == value and type(received) in (bool, int)


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        ('"--cache", action="store_true", default=True', False, "can only make it true"),
        ('"--cache", default=True', False, "'false' would count as true"),
        ('"--cache", type=str', True, "it reads a text"),
        ('"--cache", action="store_true"', "yes", "takes no value"),
        ('"--layers", type=int', [1, 2], "takes one value"),
        ('"--layers", type=int', 1.5, "a whole number"),
        ('"--layers", choices=["s", "m"]', "x", "one of s, m"),
        ('"--layers", nargs=2', [1], "takes 2 values"),
        ('"--layers", nargs="+"', ["-a"], "begins with a dash"),
        ('"--layers", action="append", default=["a"]', ["b"], r"added to \['a'\]"),
        ('"--layers", action="count", default=2', 1, "use 2, 3"),
        ('"--layers", action="count"', 10**9, "use 100 or less"),
        ('"--layers", action="append"', [], "leave it out"),
        ('"--layers", type=lambda s: s[0] in "yY"', True, "reads as true is not known"),
        ('"--layers", type=os.path.abspath', False, "reads as false is not known"),
        ('"layers", nargs=argparse.REMAINDER', ["--a"], "would be read as an option"),
        ('"--no-layers", dest="layers", action="store_const", const=False', True, "only make it False"),
        ('"a", nargs="?"\n"layers", nargs="?"', "z", "give a too"),
        ('"a"\n"layers", nargs="?"', "z", "give a too"),
    ],
)
def test_what_a_parser_cannot_get_is_refused_before_the_script_starts(
    tmp_path: Path, declared: str, value: Any, reason: str
) -> None:
    name = "layers" if "layers" in declared else "cache"
    with pytest.raises(ProgramFailed, match=reason) as failure:
        received_by_argparse(tmp_path, declared, {name: value})
    assert failure.value.code == "script_arguments"


@pytest.mark.parametrize(
    ("declared", "args", "received"),
    [
        ('"--layers", type=int, nargs="+"', {"layers": [64, 32]}, {"layers": [64, 32]}),
        ('"--layers", type=int, nargs="+"', {"layers": "64 32"}, {"layers": [64, 32]}),
        ('"--layers", type=float, nargs="*"', {"layers": [-1e-5, 2]}, {"layers": [-1e-5, 2.0]}),
        ('"--layers", type=int, nargs="*", default=[1]', {"layers": []}, {"layers": []}),
        ('"--size", type=int, nargs=2', {"size": [3, 4]}, {"size": [3, 4]}),
        ('"--tag", action="append"', {"tag": ["a", "-b"]}, {"tag": ["a", "-b"]}),
        ('"--tag", action="append"', {"tag": "a b"}, {"tag": ["a b"]}),
        ('"--tag", action="extend", nargs="+"', {"tag": ["a", "b"]}, {"tag": ["a", "b"]}),
        ('"-v", "--verbose", action="count", default=0', {"verbose": 3}, {"verbose": 3}),
        ('"--fast", action="store_const", const=5, default=1', {"fast": 5}, {"fast": 5}),
        (
            '"--gpu", dest="device", action="store_const", const="gpu", default="cpu"\n'
            '"--tpu", dest="device", action="store_const", const="tpu"',
            {"device": "tpu"},
            {"device": "tpu"},
        ),
        ('"--tag", action="append", default=["a"]', {"tag": ["a", "b"]}, {"tag": ["a", "b"]}),
        ('"-v", "--verbose", action="count", default=1', {"verbose": 3}, {"verbose": 3}),
        ('"-lr", type=float', {"lr": 0.5}, {"lr": 0.5}),
        ('"-e", type=int', {"e": -3}, {"e": -3}),
        ('"--learning-rate", type=float', {"learning_rate": 1e-5}, {"learning_rate": 1e-5}),
        ('"--epochs", type=int', {"epochs": 3.0}, {"epochs": 3}),
        ('"--name"', {"name": ""}, {"name": ""}),
        ('"data"\n"--epochs", type=int', {"epochs": 2, "data": "-x"}, {"data": "-x", "epochs": 2}),
        (
            '"data"\n"parts", nargs="+", type=int\n"--tags", nargs="+"',
            {"tags": ["a", "b"], "parts": [1, 2], "data": "d"},
            {"data": "d", "parts": [1, 2], "tags": ["a", "b"]},
        ),
        (
            '"--cache", action="store_true", default=True\n"--no-cache", dest="cache", action="store_false"',
            {"cache": False},
            {"cache": False},
        ),
        (
            '"src", nargs="?", default="x"\n"dst", nargs="?", default="y"',
            {"dst": "z"},
            {"src": "x", "dst": "z"},
        ),
        ('"src", nargs="?"\n"dst"', {"dst": "z"}, {"src": None, "dst": "z"}),
        ('"--units", nargs=N, type=int', {"units": [1, 2]}, {"units": [1, 2]}),
        ('"--units", nargs=argparse.ONE_OR_MORE, type=int', {"units": [1]}, {"units": [1]}),
        ('"--units", nargs=len("ab"), type=int', {"units": [1, 2]}, {"units": [1, 2]}),
        ('"--no-cache", dest="cache", action="store_false"', {"no-cache": True}, {"cache": False}),
        (
            '"--no-cache", dest="cache", action="store_const", const=False, default=True',
            {"cache": True},
            {"cache": True},
        ),
        ('"--cache", type=lambda text: bool(int(text))', {"cache": False}, {"cache": False}),
        ('"--cache", action=Switch', {"cache": False}, {"cache": False}),
        ('"size", type=int\n"-1", dest="one", action="store_true"', {"size": -3}, {"size": -3, "one": False}),
        (
            '"--seed", type=int\n"run"\n"rest", nargs=argparse.REMAINDER',
            {"rest": ["--a", "b"], "run": "x", "seed": 1},
            {"seed": 1, "run": "x", "rest": ["--a", "b"]},
        ),
        ('"--cache", action=argparse.BooleanOptionalAction', {"no-cache": True}, {"cache": False}),
    ],
)
def test_values_arrive_as_they_are_recorded(
    tmp_path: Path, declared: str, args: dict[str, Any], received: dict[str, Any]
) -> None:
    assert received_by_argparse(tmp_path, declared, args) == received


def test_a_command_gets_its_own_arguments(tmp_path: Path) -> None:
    text = (
        PARSER
        + 'add("--seed", type=int)\nsub = parser.add_subparsers(dest="what", required=True)\n'
        + 'fit = sub.add_parser("fit")\nfit.add_argument("data")\n'
        + 'fit.add_argument("--cache", action=argparse.BooleanOptionalAction)\n'
        + 'other = sub.add_parser("test")\nother.add_argument("--cache", action="store_false")\n'
        + READ + REPORTED
    )  # fmt: skip
    args = {"cache": False, "what": "fit", "data": "d.csv", "seed": 3}
    assert run(tmp_path, {"train.py": text}, args) == args
    assert run(tmp_path, {"train.py": text}, {"what": "test", "cache": False})["cache"] is False
    with pytest.raises(ProgramFailed, match="has no such argument"):
        run(tmp_path, {"train.py": text}, {"what": "test", "data": "d.csv"})
    with pytest.raises(ProgramFailed, match="it belongs to the command 'fit'; give the argument 'what'"):
        run(tmp_path, {"train.py": text}, {"data": "d.csv"})


@pytest.mark.parametrize(
    "args",
    [{"tags": ["a", "b"], "seed": 3}, {"seed": 3, "tags": ["a"], "log": True}, {"log": "x"}],
)
def test_no_option_takes_the_command_for_one_of_its_values(tmp_path: Path, args: dict[str, Any]) -> None:
    text = (
        PARSER
        + 'parser.add_argument("--tags", nargs="+")\nparser.add_argument("--seed", type=int)\n'
        + 'parser.add_argument("--log", nargs="?", const=True)\n'
        + 'sub = parser.add_subparsers(dest="cmd")\n'
        + 'fit = sub.add_parser("train")\nfit.add_argument("--epochs", type=int)\n'
        + READ + REPORTED
    )  # fmt: skip
    sent = {**args, "cmd": "train", "epochs": 2}
    received = run(tmp_path, {"train.py": text}, sent)
    assert received == {"tags": None, "seed": None, "log": None, **sent}
    for alone in ({"tags": ["a", "b"]}, {"log": True}, {"unknown": [1, 2]}):
        with pytest.raises(ProgramFailed, match="would take the command too; give another"):
            run(tmp_path, {"train.py": text}, {**alone, "cmd": "train"})


@pytest.mark.parametrize(
    "commands",
    ["".join(f'sub.add_parser("command_number_{i}")\n' for i in range(15)),
     'for i in range(15):\n    sub.add_parser(f"command_number_{i}")\n'],
)  # fmt: skip
def test_a_script_may_have_many_commands(tmp_path: Path, commands: str) -> None:
    text = PARSER + 'sub = parser.add_subparsers(dest="cmd")\n' + commands + READ + REPORTED
    args = {"cmd": "command_number_14"}
    assert run(tmp_path, {"train.py": text}, args) == args


def test_one_variable_may_hold_the_parsers_of_several_commands(tmp_path: Path) -> None:
    text = (
        PARSER
        + 'def commands(group):\n    p = group.add_parser("fit")\n    p.add_argument("--cache", type=int)\n'
        + '    p = group.add_parser("test")\n    p.add_argument("--cache", action="store_false")\n'
        + 'commands(parser.add_subparsers(dest="what"))\n'
        + READ + REPORTED
    )  # fmt: skip
    assert run(tmp_path, {"train.py": text}, {"what": "fit", "cache": 3}) == {"what": "fit", "cache": 3}
    received = run(tmp_path, {"train.py": text}, {"what": "test", "cache": False})
    assert received == {"what": "test", "cache": False}


def test_the_parser_may_be_in_another_file(tmp_path: Path) -> None:
    options = PARSER + 'add("--cache", action="store_false")\n'
    options = options.replace("add(", "parser.add_argument(")
    text = "import json, os\nfrom settings.options import parser\nif __name__ == '__main__':\n    "
    text += "received = vars(parser.parse_args())\n" + REPORTED.replace("\n", "\n    ")
    files = {"train.py": text, "settings/options.py": options, "settings/__init__.py": ""}
    assert run(tmp_path, files, {"cache": False}) == {"cache": False}
    assert run(
        tmp_path, {**files, "pkg/__init__.py": "", "pkg/go.py": text}, {"cache": True}, "-m pkg.go"
    ) == {"cache": True}


def test_a_default_that_is_set_later_counts(tmp_path: Path) -> None:
    text = PARSER + 'add("--fast", action="store_true")\nparser.set_defaults(fast=True)\n' + READ + REPORTED
    with pytest.raises(ProgramFailed, match="can only make it true"):
        run(tmp_path, {"train.py": text.replace("add(", "parser.add_argument(")}, {"fast": False})


def test_a_default_from_a_file_of_settings_is_not_taken_for_false(tmp_path: Path) -> None:
    text = (
        PARSER
        + 'add("--fast", action="store_true")\nparser.set_defaults(**json.loads("{}"))\n'
        + READ
        + REPORTED
    )
    with pytest.raises(
        ProgramFailed, match=r"can only make it true, and without it, it is parser\.set_defaults"
    ):
        run(tmp_path, {"train.py": text}, {"fast": False})
    assert run(tmp_path, {"train.py": text}, {"fast": True}) == {"fast": True}


def test_an_argument_may_be_declared_through_a_name_for_the_method(tmp_path: Path) -> None:
    text = PARSER + 'add("--shuffle", action="store_false")\n' + READ + REPORTED
    assert run(tmp_path, {"train.py": text}, {"shuffle": False}) == {"shuffle": False}


@pytest.mark.parametrize(
    "declared",
    [
        'for name in json.loads(\'["shuffle", "cache"]\'):\n'
        '    parser.add_argument("--" + name, action="store_false")\n',
        "import optparse\nparser = optparse.OptionParser()\n"
        'parser.add_option("--shuffle", action="store_false", default=True)\n',
    ],
    ids=["loop", "optparse"],
)
def test_false_is_not_left_out_for_a_declaration_that_is_not_found(tmp_path: Path, declared: str) -> None:
    is_loop = "optparse" not in declared
    text = (PARSER if is_loop else "import json, os\n") + declared
    text += READ if is_loop else "\nreceived = vars(parser.parse_args()[0])\n"
    with pytest.raises(ProgramFailed, match="its declaration was not found, so how the script reads false"):
        run(tmp_path, {"train.py": text + REPORTED}, {"shuffle": False})


def test_a_command_has_the_arguments_of_its_parents(tmp_path: Path) -> None:
    text = (
        PARSER
        + 'base = argparse.ArgumentParser(add_help=False)\ngroup = base.add_argument_group("all")\n'
        + 'group.add_argument("--seed", type=int)\nbase.add_argument("--fast", action="store_false")\n'
        + 'sub = parser.add_subparsers(dest="what")\n'
        + 'fit = sub.add_parser("fit", parents=[base])\nsub.add_parser("test").add_argument("--part")\n'
        + READ + REPORTED
    )  # fmt: skip
    args = {"what": "fit", "seed": 3, "fast": False}
    assert run(tmp_path, {"train.py": text}, args) == args
    args = {"what": "test", "part": "x"}
    assert run(tmp_path, {"train.py": text}, args) == args


def test_a_value_goes_to_the_command_whose_default_would_replace_it(tmp_path: Path) -> None:
    text = (
        PARSER + 'add("--seed", type=int)\nsub = parser.add_subparsers(dest="what")\n'
        'sub.add_parser("fit").add_argument("--seed", type=int, default=1)\n' + READ + REPORTED
    )  # fmt: skip
    args = {"what": "fit", "seed": 3}
    assert run(tmp_path, {"train.py": text}, args) == args


def test_settings_that_only_running_shows_are_not_guessed(tmp_path: Path) -> None:
    text = (
        PARSER + 'flag = {"action": "store_true"}\nparser.add_argument("--fast", **flag)\n' + READ + REPORTED
    )
    assert run(tmp_path, {"train.py": text}, {"fast": True}) == {"fast": True}


def test_a_script_without_known_arguments_gets_them_as_written(tmp_path: Path) -> None:
    text = "import json, os, sys\nreceived = sys.argv[1:]\n" + REPORTED
    args = {"rate": -0.5, "fast": True, "slow": False, "names": ["a", "b"]}
    assert run(tmp_path, {"train.py": text}, args) == ["--rate=-0.5", "--fast", "--names", "a", "b"]


CLICK = """
import click, json, os

@click.command()
@click.argument("data")
@click.option("--cache/--no-cache", default=True)
@click.option("--fast", is_flag=True)
@click.option("--shuffle", type=bool, default=True)
@click.option("--tag", multiple=True)
@click.option("--size", nargs=2, type=int)
@click.option("-v", "--verbose", count=True)
@click.option("--mode", type=click.Choice(["a", "b"]), default="a")
@click.option("--no-log", "log", flag_value=False, default=True)
@click.option("--upper", "case", flag_value="upper", default=True)
@click.option("--lower", "case", flag_value="lower")
@click.option("--pair", type=(int, str))
@click.argument("files", nargs=-1)
def main(**received):
    REPORTED

if __name__ == "__main__":
    main()
"""
TYPER = """
import json, os
from typing import List, Optional, Tuple
import typer

def main(data: str, cache: bool = True, learning_rate: float = 0.1, tag: List[str] = [],
         fast: bool = typer.Option(False, "--fast"), name: Optional[str] = None,
         log: bool = typer.Option(True, " /--quiet"), size: Tuple[int, int] = (1, 2)):
    received = dict(data=data, cache=cache, learning_rate=learning_rate, tag=tag, fast=fast, name=name,
                    log=log, size=size)
    REPORTED

if __name__ == "__main__":
    typer.run(main)
"""
ABSL = """
import json, os
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_bool("cache", True, "")
flags.DEFINE_integer("epochs", 3, "")
flags.DEFINE_list("tags", [], "")
flags.DEFINE_multi_integer("size", [], "")
flags.DEFINE_enum("mode", "a", ["a", "b"], "")

def main(_):
    received = {name: FLAGS[name].value for name in ("cache", "epochs", "tags", "size", "mode")}
    REPORTED

if __name__ == "__main__":
    app.run(main)
"""


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (
            CLICK,
            {
                "data": "d", "cache": False, "fast": True, "shuffle": False, "tag": ["x", "y"],
                "size": [3, 4], "verbose": 2, "mode": "b", "log": False, "case": "lower", "pair": [1, "a"],
                "files": ["-1", "b"],
            },
        ),
        (
            TYPER,
            {
                "data": "d", "cache": False, "learning_rate": 0.5, "tag": ["x"], "fast": True, "name": "n",
                "log": False, "size": [3, 4],
            },
        ),
        (ABSL, {"cache": False, "epochs": 5, "tags": ["x", "y"], "size": [1, 2], "mode": "b"}),
    ],
    ids=["click", "typer", "absl"],
)  # fmt: skip
def test_other_parsers_get_what_is_recorded(tmp_path: Path, text: str, args: dict[str, Any]) -> None:
    text = text.replace("REPORTED", REPORTED.strip().replace("\n", "\n    "))
    assert run(tmp_path, {"train.py": text}, args) == args


def test_a_value_is_not_divided_at_the_comma_of_a_list(tmp_path: Path) -> None:
    text = ABSL.replace("REPORTED", "pass")
    with pytest.raises(ProgramFailed, match="'b,d' would be read as several values"):
        run(tmp_path, {"train.py": text}, {"tags": ["b,d", "c"]})


BY_HAND = """
import json, os, sys
from ast import literal_eval

received = {}
for argument in sys.argv[1:]:
    assert argument.startswith("--") and "=" in argument, argument
    name, text = argument[2:].split("=", 1)
    try:
        received[name] = literal_eval(text)
    except (SyntaxError, ValueError):
        received[name] = text
"""


@pytest.mark.parametrize("is_executed", [False, True])
def test_a_script_that_reads_assignments_gets_them(tmp_path: Path, is_executed: bool) -> None:
    args = {"rate": 0.5, "compile": False, "sizes": [1, 2], "name": "a=b"}
    files = {"train.py": BY_HAND + REPORTED}
    if is_executed:
        files = {"train.py": 'exec(open("settings.py").read())\n' + REPORTED, "settings.py": BY_HAND}
    assert run(tmp_path, files, args) == args


def test_a_script_of_hydra_gets_assignments(tmp_path: Path) -> None:
    hydra = "import json, os, sys\nreceived = sys.argv[1:]\n"
    files = {"train.py": "from hydra import main\n" + hydra + REPORTED, "hydra.py": "def main(): ..."}
    args = {"model.rate": 0.5, "fast": False, "sizes": [1, 2]}
    assert run(tmp_path, files, args) == ["model.rate=0.5", "fast=False", "sizes=[1,2]"]


def test_an_argument_that_is_read_by_its_place_is_passed_there(tmp_path: Path) -> None:
    text = "import json, os, sys\nepochs = int(sys.argv[1])\n"
    text += "rate = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5\n"
    text += "received = {'epochs': epochs, 'rate': rate}\n" + REPORTED
    assert run(tmp_path, {"train.py": text}, {"rate": -0.1, "epochs": 3}) == {"epochs": 3, "rate": -0.1}
    assert run(tmp_path, {"train.py": text}, {"epochs": 3}) == {"epochs": 3, "rate": 0.5}
