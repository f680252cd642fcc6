"""Arguments arrive at the command whose parser declares them, however the script makes its parsers."""

from pathlib import Path
from typing import Any

import pytest

from jobs.messages.code import CodeEntry
from tests.code.making import read_files
from tests.engine.tasks.test_script_arguments import PARSER, READ, REPORTED, received_by_argparse, run
from workers.engine.errors import ProgramFailed

COMMANDS = f'{PARSER}sub = parser.add_subparsers(dest="cmd")\n'
TWO = f'{COMMANDS}fit = sub.add_parser("fit")\ntest = sub.add_parser("test")\n'
MADE: dict[str, str] = {
    "a loop over parsers": TWO + "for p in (fit, test):\n    p.add_argument('--seed', type=int)\n",
    "a loop over names": COMMANDS
    + "for name in ['fit', 'test']:\n    p = sub.add_parser(name)\n    p.add_argument('--seed', type=int)\n",
    "a loop over pairs": COMMANDS
    + "for name, about in [('fit', 'a'), ('test', 'b')]:\n    p = sub.add_parser(name, help=about)\n"
    "    p.add_argument('--seed', type=int)\n",
    "a loop over a dict": f"HANDLERS = {{'fit': print, 'test': repr}}\n{COMMANDS}"
    "for name, handler in HANDLERS.items():\n    sub.add_parser(name).add_argument('--seed', type=int)\n",
    "a dict that a loop fills": f"{COMMANDS}parsers = {{}}\nfor name in ('fit', 'test'):\n"
    "    parsers[name] = sub.add_parser(name)\nfor name in parsers:\n"
    "    parsers[name].add_argument('--seed', type=int)\n",
    "an item of such a dict": f"{COMMANDS}parsers = {{}}\nfor name in ('fit', 'test'):\n"
    "    parsers[name] = sub.add_parser(name)\nparsers['fit'].add_argument('--seed', type=int)\n",
    "an item": f"{COMMANDS}parsers = {{}}\nparsers['fit'] = sub.add_parser('fit')\n"
    "parsers['test'] = sub.add_parser('test')\nparsers['fit'].add_argument('--seed', type=int)\n",
    "values of a dict": f"{COMMANDS}parsers = {{'fit': sub.add_parser('fit'),\n"
    "           'test': sub.add_parser('test')}\n"
    "for p in parsers.values():\n    p.add_argument('--seed', type=int)\n",
    "a function for each": "def common(p):\n    p.add_argument('--seed', type=int)\n"
    f"{TWO}common(fit)\ncommon(p=test)\n",
    "a function with the name of the script's parser": "def common(parser):\n"
    f"    parser.add_argument('--seed', type=int)\n{TWO}common(fit)\n",
    "a group of a command": f"{TWO}fit.add_argument_group('more').add_argument('--seed', type=int)\n",
    "a choice of one inside of a group": f"{TWO}group = fit.add_argument_group('more')\n"
    "one = group.add_mutually_exclusive_group()\none.add_argument('--seed', type=int)\n",
    "parents that a function makes": "import argparse\ndef base():\n"
    "    p = argparse.ArgumentParser(add_help=False)\n    p.add_argument('--seed', type=int)\n    return p\n"
    f"{COMMANDS}sub.add_parser('fit', parents=[base()])\nsub.add_parser('test')\n",
    "a comprehension": f"{TWO}[p.add_argument('--seed', type=int) for p in (fit, test)]\n",
    "functions that call themselves and each other": "def walk(p, deep):\n"
    "    if not deep: p.add_argument('--seed', type=int)\n    else:\n"
    + "        walk(p, deep - 1) if deep > 1 else turn(p, 0)\n" * 5
    + "def turn(q, deep):\n    walk(q, deep)\n"
    + f"{TWO}walk(fit, 0)\nturn(test, 0)\n",
    "an attribute": f"{COMMANDS}class A: ...\na = A()\na.fit = sub.add_parser('fit')\n"
    "a.fit.add_argument('--seed', type=int)\n",
}


def entry_of(folder: Path, text: str) -> CodeEntry:
    (entry,) = read_files(folder, {"train.py": text}).found.entries
    return entry


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_an_argument_arrives_at_its_command(tmp_path: Path, made: str) -> None:
    args = {"cmd": "fit", "seed": 3}
    assert run(tmp_path, {"train.py": made + READ + REPORTED}, args) == args
    assert not entry_of(tmp_path, made + READ).note


NESTED = (
    f'{PARSER}add("--log")\nsub = parser.add_subparsers(dest="cmd")\ndata = sub.add_parser("data")\n'
    'data.add_argument("--root")\nparts = data.add_subparsers(dest="part")\n'
    'clean = parts.add_parser("clean")\nclean.add_argument("path")\nclean.add_argument("--size", type=int)\n'
    'parts.add_parser("copy").add_argument("--to")\n'
    'sub.add_parser("fit").add_argument("--size", type=float)\n'
)


def test_a_command_of_a_command_gets_its_own_arguments(tmp_path: Path) -> None:
    text = NESTED + READ + REPORTED
    args = {"log": "l", "cmd": "data", "root": "r", "part": "clean", "path": "p", "size": 3}
    assert run(tmp_path, {"train.py": text}, args) == args
    args = {"log": "l", "cmd": "fit", "size": 0.5}
    assert run(tmp_path, {"train.py": text}, args) == args
    with pytest.raises(
        ProgramFailed, match="it belongs to the command 'data copy'; give the argument 'part'"
    ):
        run(tmp_path, {"train.py": text}, {"cmd": "data", "to": "x"})
    with pytest.raises(ProgramFailed, match="'copying' is no command; it has clean, copy"):
        run(tmp_path, {"train.py": text}, {"cmd": "data", "part": "copying"})


def test_choices_between_commands_without_names_are_told_apart(tmp_path: Path) -> None:
    text = NESTED.replace('dest="cmd"', "").replace('dest="part"', "")
    names = [argument.name for argument in entry_of(tmp_path, text + READ).arguments]
    assert names[:2] == ["command", "command_2"]
    args = {"command": "data", "command_2": "copy", "to": "x"}
    received = run(tmp_path, {"train.py": text + READ + REPORTED}, args)
    assert received["to"] == "x"


def test_an_argument_of_an_unknown_command_is_named_by_its_line_and_can_be_added(tmp_path: Path) -> None:
    text = (
        f'{COMMANDS}NAMES = json.loads(\'["fit", "test"]\')\nfor name in NAMES:\n'
        "    p = sub.add_parser(name)\n    p.add_argument('--seed', type=int)\n"
    )
    entry = entry_of(tmp_path, text + READ)
    assert "the arguments of line 8: add them by hand in the form" in entry.note
    args = {"cmd": "test", "seed": 3}
    assert run(tmp_path, {"train.py": text + READ + REPORTED}, args) == args


@pytest.mark.parametrize(
    ("declared", "choices"),
    [
        ("choices=range(1, 4)", "[1, 2, 3]"),
        ("choices=list(range(1, 8, 3))", "[1, 4, 7]"),
        ("choices=LEVELS", "[1, 2]"),
        ("choices=MODELS", "[1, 5]"),
        ("choices=sorted(MODELS.keys())", "[1, 5]"),
        ("choices=range(10**9)", "range(10**9)"),
        ("choices=range(0, 1000)", "range(0, 1000)"),
        ("choices=range(3, 0, 0)", "range(3, 0, 0)"),
        ("choices=make()", "make()"),
        ("choices=[1, N]", "[1, N]"),
    ],
)
def test_choices_are_read_where_they_are_known(tmp_path: Path, declared: str, choices: str) -> None:
    text = f"{PARSER}LEVELS = (1, 2)\nMODELS = {{1: print, 5: repr}}\nadd('--level', type=int, {declared})\n"
    assert entry_of(tmp_path, text + READ).arguments[0].choices == choices


def test_a_value_outside_of_a_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="it takes one of 1, 2, 3, not 7"):
        received_by_argparse(tmp_path, "'--level', type=int, choices=range(1, 4)", {"level": 7})


@pytest.mark.parametrize(
    ("declared", "value", "received"),
    [
        ("'--names', nargs='+'", '["a b", "c"]', ["a b", "c"]),
        ("'--names', nargs='+'", '["a"]', ["a"]),
        ("'--names', nargs='+'", "a b", ["a b"]),
        ("'--names', nargs='+'", "[a, b]", ["[a, b]"]),
        ("'--names', action='append'", '["a", "b"]', ["a", "b"]),
        ("'--names', nargs=2", '["a", "b"]', ["a", "b"]),
        ("'--names'", '["a", "b"]', '["a", "b"]'),
    ],
)
def test_a_list_that_a_search_chooses_as_a_text_becomes_several_arguments(
    tmp_path: Path, declared: str, value: str, received: Any
) -> None:
    assert received_by_argparse(tmp_path, declared, {"names": value}) == {"names": received}


def test_functions_that_give_a_parser_to_themselves_many_times_are_read_at_once(tmp_path: Path) -> None:
    walk = "def walk(parser, deep):\n    parser.add_argument('--seed')\n" + "    walk(parser, deep)\n" * 5
    chain = "".join(
        f"def add{number}(p):\n    p.add_argument('--x{number}')\n"
        + "".join(f"    add{inner}(p)\n" for inner in range(number))
        for number in range(16)
    )
    commands = "def more(subs):\n    subs.add_parser('fit')\n" + "    more(subs)\n" * 5
    made = f"{walk}{chain}{commands}{PARSER}walk(parser, 3)\nadd15(parser)\nmore(parser.add_subparsers())\n"
    entry = entry_of(tmp_path, made + READ)
    names = {argument.name for argument in entry.arguments}
    assert names == {"command", "--seed", *(f"--x{number}" for number in range(16))}
