"""Passes a value to an argument of a script as its parser wants it, or refuses it."""

import ast
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from jobs.messages.code import CodeArgument
from jobs.spec.sections.script_model import ScriptArgument, ScriptScalar

NEGATIVE = re.compile(r"-(\d+(\.\d*)?|\.\d+)")
"""What argparse takes for a number, and not for an option."""
NUMBERS = {"int": int, "float": float}
SWITCHES = {
    "argparse": "declare it with action=argparse.BooleanOptionalAction",
    "click": 'declare it as "--flag/--no-flag", with its own name',
    "typer": 'declare it as a bool with typer.Option("--flag/--no-flag"), with its own name',
    "absl": "define it by flags.DEFINE_boolean",
    "fire": "give its parameter a default of True or False",
    "transformers": "annotate its field as bool",
}
"""How each library declares an argument that can be true and false."""
FALSE_WORDS = ("false", "no", "off", "0", "f", "n")
"""Texts that mean false to people. `bool` reads them as true."""
RANGE = re.compile(r"range\((-?\d+)(?:, *(-?\d+)(?:, *(-?[1-9]\d*))?)?\)")
"""Choices as they are written in the code."""
MAX_CHOICES_SHOWN = 20
MAX_COUNT = 100
"""How often the name of an option that counts is passed."""


class ArgumentRefused(Exception):
    """A script's parser cannot get a value."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name!r}: {message}")
        self.name = name
        self.message = message


def bare_names(argument: CodeArgument) -> list[str]:
    """Return the names of an option without their dashes."""
    return [flag.lstrip("-") for flag in (*argument.flags, *filter(None, [argument.off]))]


def named(flag: str, text: str) -> list[str]:
    """Return an option with one value."""
    # argparse takes a value that begins with a dash for another argument, unless it is joined to its name.
    if text.startswith("-") or not text:
        return [f"{flag}={text}"] if flag.startswith("--") else [f"{flag}{text}"]
    return [flag, text]


def passed_option(argument: CodeArgument, name: str, value: ScriptArgument) -> list[str]:
    """Return what passes a value to an option.

    Raises:
        ArgumentRefused: it cannot have this value.
    """
    value = _listed(argument, value)
    long_names = [flag for flag in argument.flags if flag.startswith("--")]
    flag = max(long_names or argument.flags, key=len)
    if argument.action in ("true", "false", "boolean"):
        return _switch(argument, name, value, flag)
    if argument.action == "constant":
        return _constant(argument, name, value, flag)
    if argument.action == "count":
        begins = literal(argument.default) or 0
        if isinstance(value, int) and isinstance(begins, int) and value >= begins:
            if value - begins > MAX_COUNT:
                raise ArgumentRefused(
                    name,
                    f"{flag} can be given {MAX_COUNT} times: use {begins + MAX_COUNT} or less, not {value}",
                )
            return [flag] * int(value - begins)
        raise ArgumentRefused(
            name, f"it counts how often {flag} is given: use {begins}, {begins + 1}, …, not {value!r}"
        )
    if argument.nargs == "?" and isinstance(value, bool) and not argument.words:
        return _optional_value(argument, name, value, flag)
    if argument.action in ("append", "extend"):
        if value == [] and literal(argument.default) != []:
            raise ArgumentRefused(name, f"without a value it is {argument.default}, not []; leave it out")
        value = _without_present(argument, name, value)
    texts = passed_values(argument, name, value)
    if argument.action == "append" and not argument.nargs:
        return [part for text in texts for part in named(flag, text)]
    if argument.nargs in (None, "?"):
        return named(flag, texts[0])
    if long := next((text for text in texts if text.startswith("-") and not NEGATIVE.fullmatch(text)), None):
        raise ArgumentRefused(name, f"{long!r} begins with a dash, so it would be read as another argument")
    return [flag, *texts]


def _without_present(argument: CodeArgument, name: str, value: ScriptArgument) -> ScriptArgument:
    """Return the values that are added to those that a list has by default."""
    present, values = literal(argument.const), value if isinstance(value, list) else [value]
    if not isinstance(present, list | tuple) or not present:
        return value
    if list(present) != values[: len(present)]:
        raise ArgumentRefused(
            name, f"its values are added to {list(present)!r}, so the script cannot get {value!r} alone"
        )
    return values[len(present) :]


def _switch(argument: CodeArgument, name: str, value: ScriptArgument, flag: str) -> list[str]:
    if not isinstance(value, bool):
        raise ArgumentRefused(name, f"{flag} takes no value: use true or false, not {value!r}")
    if argument.action == "boolean":
        is_off = name == (argument.off or "").lstrip("-")
        return [flag] if value != is_off else [argument.off or flag]
    sets = argument.action == "true"
    # `--no-cache` may set `cache`: then its own name means that it is given.
    if argument.dest is not None and name in bare_names(argument):
        return [flag] if value else []
    default = literal(argument.default)
    if isinstance(default, bool) and value == default:
        return []
    if value == sets:
        return [flag]
    if default is None and argument.default == "None" and not value:
        return []
    word = "true" if sets else "false"
    raise ArgumentRefused(
        name,
        f"{flag} can only make it {word}, and without it, it is {argument.default}, so the script cannot get "
        f"{str(value).lower()}; {SWITCHES[argument.library]}",
    )


def _constant(argument: CodeArgument, name: str, value: ScriptArgument, flag: str) -> list[str]:
    const, default = literal(argument.const), literal(argument.default)
    # `--no-cache` may set `cache` to false: then its own name means that it is given.
    is_its_value = isinstance(const, bool) and not (argument.dest and name in bare_names(argument))
    if is_its_value and isinstance(value, bool) and value != const:
        if value is default or (not value and default is None and argument.default in (None, "None")):
            return []
        raise ArgumentRefused(name, f"{flag} can only make it {argument.const}, not {value!r}")
    if is_its_value and value == const:
        return [flag]
    if value is True or (const is not None and value == const):
        return [flag]
    if value is False or value == default:
        return []
    raise ArgumentRefused(
        name, f"{flag} takes no value: true passes its name, which means {argument.const}, not {value!r}"
    )


def _optional_value(argument: CodeArgument, name: str, value: bool, flag: str) -> list[str]:
    const, default = literal(argument.const), literal(argument.default)
    if value is True and const is True:
        return [flag]
    if value is False and default in (False, None) and argument.default in (None, "None", "False"):
        return []
    raise ArgumentRefused(name, f"{flag} reads a text, and every text counts as true; give the text itself")


def passed_values(argument: CodeArgument, name: str, value: ScriptArgument) -> list[str]:
    """Return the texts of an argument's values.

    Raises:
        ArgumentRefused: it takes another number of values, or none of this kind.
    """
    value = _listed(argument, value)
    if argument.separator is not None:
        items = value if isinstance(value, list) else [value]
        texts = [value_text(item) for item in items]
        if parts := [text for text in texts if isinstance(value, list) and argument.separator in text]:
            raise ArgumentRefused(
                name, f"{parts[0]!r} would be read as several values, which {argument.separator!r} divides"
            )
        return [argument.separator.join(texts)]
    several = argument.takes_several
    if not several and isinstance(value, list):
        raise ArgumentRefused(name, f"it takes one value, not the list {value!r}")
    items = value if isinstance(value, list) else _split(argument, value) if several else [value]
    if (argument.nargs or "").isdigit() and len(items) != int(argument.nargs or 0):
        raise ArgumentRefused(name, f"it takes {argument.nargs} values, not {len(items)}: {value!r}")
    if not items and argument.nargs == "+":
        raise ArgumentRefused(name, "it takes at least one value; leave it out")
    return [_checked_text(argument, name, item) for item in items]


def _listed(argument: CodeArgument, value: ScriptArgument) -> ScriptArgument:
    """Return the list in a text such as `["a", "b"]`: a search can only choose between single values."""
    if not argument.takes_several or not isinstance(value, str) or not value.startswith("["):
        return value
    with suppress(ValueError, RecursionError):
        listed = json.loads(value)
        if isinstance(listed, list) and all(isinstance(item, bool | int | float | str) for item in listed):
            return listed
    return value


def _split(argument: CodeArgument, value: ScriptScalar) -> list[ScriptScalar]:
    """Return the values in a text such as "64 32": a search can only choose between single values."""
    if isinstance(value, str) and argument.annotation in NUMBERS:
        return list(value.replace(",", " ").split())
    return [value]


def _checked_text(argument: CodeArgument, name: str, value: ScriptScalar) -> str:
    kind = argument.annotation
    if isinstance(value, bool):
        if not argument.words:
            raise ArgumentRefused(name, _why_no_words(argument, value))
        return argument.words[0 if value else 1]
    if kind == "int" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind in NUMBERS:
        try:
            NUMBERS[kind](value_text(value))
        except ValueError:
            noun = "a whole number" if kind == "int" else "a number"
            raise ArgumentRefused(name, f"it takes {noun}, not {value!r}") from None
    if argument.words[1:] == [""] and str(value).lower() in FALSE_WORDS:
        raise ArgumentRefused(
            name,
            f"its type bool reads {str(value)!r} as true, as every text but the empty one; give true or "
            "false without quotation marks",
        )
    choices = choices_in(argument.choices)
    if choices and not _is_among(value, choices, any_case=argument.any_case):
        raise ArgumentRefused(name, f"it takes {describe_choices(choices)}, not {value!r}")
    return value_text(value)


def choices_in(source: str | None) -> list[Any] | range:
    """Return the choices that are written in the code; empty if they are not known."""
    found = RANGE.fullmatch(source or "")
    if found is not None:
        return range(*(int(number) for number in found.groups() if number is not None))
    choices = literal(source)
    return list(choices) if isinstance(choices, list | tuple | set | dict) else []


def describe_choices(choices: Sequence[Any]) -> str:
    """Return choices for a sentence."""
    if len(choices) > MAX_CHOICES_SHOWN:
        return f"one of {choices[0]}, {choices[1]}, …, {choices[-1]}"
    return f"one of {', '.join(map(str, choices))}"


def _why_no_words(argument: CodeArgument, value: bool) -> str:
    word = str(value).lower()
    if argument.annotation in (None, "str"):
        return (
            f"it reads a text, and the text {word!r} would count as true; {SWITCHES[argument.library]}, or "
            "give a text in quotation marks"
        )
    return (
        f"which text its type {argument.annotation} reads as {word} is not known; give that text in "
        "quotation marks"
    )


def _is_among(value: ScriptScalar, choices: Sequence[Any], *, any_case: bool) -> bool:
    if isinstance(choices, range):
        return str(value).lstrip("-").isdecimal() and int(value) in choices
    texts = {str(choice) for choice in choices}
    if any_case:
        return str(value).casefold() in {text.casefold() for text in texts}
    return str(value) in texts or any(value == choice for choice in choices)


def value_text(value: ScriptScalar) -> str:
    """Return a value as a script gets it."""
    text = str(value)
    # argparse reads -1e-05 as an option.
    if isinstance(value, float) and value < 0 and "e" in text:
        return format(Decimal(text), "f")
    return text


def literal(source: str | None) -> Any:
    """Return a Python literal's value; None for any other text."""
    try:
        return None if source is None else ast.literal_eval(source)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
