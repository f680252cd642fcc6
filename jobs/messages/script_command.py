"""Makes the command that starts a script: each argument as the script's parser wants it."""

from collections.abc import Iterable, Sequence

from jobs.messages.code import CodeArgument, GivenAs, default_dest
from jobs.messages.script_places import joined, passed_places
from jobs.messages.script_values import (
    ArgumentRefused,
    bare_names,
    literal,
    named,
    passed_option,
    passed_values,
    value_text,
)
from jobs.spec.sections.script_model import MODULE, ScriptArgument, ScriptModel

REMAINDER = "..."
"""The number of values of a place that takes all texts that follow."""


def command_of(
    script: ScriptModel,
    declared: Sequence[CodeArgument],
    *,
    is_whole: bool = True,
    given_as: GivenAs = "--name value",
) -> list[str]:
    """Return the interpreter's arguments: the script or module with its own arguments.

    Args:
        script: the script with all its values.
        declared: the arguments that it declares.
        is_whole: whether it declares no others, as far as that is known.
        given_as: how others are passed.

    Raises:
        ArgumentRefused: the script would not get a value as it is recorded.
    """
    module = script.entry.removeprefix(MODULE) if script.entry.startswith(MODULE) else ""
    start = ["-m", module] if module else [script.entry]
    chosen = chosen_command(script, declared)
    # Of two with one name, a command's own counts: its default replaces the value of the other.
    usable = [argument for argument in declared if chosen is not None and argument.command == chosen]
    usable += [argument for argument in declared if argument.command is None]
    options: dict[str | None, list[list[str]]] = {None: [], chosen: []}
    unended: dict[str, list[str]] = {}
    places: dict[str | None, dict[int, list[str]]] = {None: {}, chosen: {}}
    given: dict[str, str] = {}
    for name, value in script.args.items():
        argument = find_argument(name, value, usable)
        if argument is not None and (other := given.setdefault(_dest(argument), name)) != name:
            raise ArgumentRefused(name, f"it is the same argument as {other!r}; leave one of them out")
        if argument is None:
            if owner := find_argument(name, value, declared):
                raise ArgumentRefused(name, why_not_of(chosen, owner, declared))
            texts = _generic(name, value, is_whole=is_whole, given_as=given_as)
            # A name alone is most often an option that takes no value.
            if isinstance(value, list) and len(texts) > 1:
                unended[name] = texts
            options[None].append(texts)
        elif argument.flags:
            texts = passed_option(argument, name, value)
            if argument.command is None and _takes_more(argument, texts):
                unended[name] = texts
            options[argument.command].append(texts)
        elif argument.action != "command":
            order = _places_of(argument.command, usable)
            places[argument.command][order.index(argument)] = passed_values(argument, name, value)
    main = passed_places(_places_of(None, usable), places[None])
    rest = _rest_of(chosen, usable)
    if chosen is None:
        ended = _before("what follows", options[None], unended) if rest and main else options[None]
        return [*start, *joined(main, ended, rest, is_parsed=given_as != "value")]
    own = passed_places(_places_of(chosen, usable), places[chosen])
    before = joined(main, _before("the command", options[None], unended), is_last=False)
    return [*start, *before, chosen, *joined(own, options[chosen], rest)]


def why_not_of(chosen: str | None, owner: CodeArgument, declared: Sequence[CodeArgument]) -> str:
    """Return why an argument of another command is not passed."""
    if chosen is not None:
        return f"the command {chosen!r} has no such argument"
    choice = next((argument.name for argument in declared if argument.action == "command"), "command")
    return f"it belongs to the command {owner.command!r}; give the argument {choice!r} with it too"


def _rest_of(command: str | None, arguments: Sequence[CodeArgument]) -> str:
    """Return the name of a parser's last place if it takes all texts that follow; else empty."""
    places = _places_of(command, arguments)
    return places[-1].name if places and places[-1].nargs == REMAINDER else ""


def _places_of(command: str | None, arguments: Sequence[CodeArgument]) -> list[CodeArgument]:
    """Return a parser's arguments without names."""
    return [
        each for each in arguments if each.command == command and not each.flags and each.action != "command"
    ]


def _takes_more(argument: CodeArgument, texts: Sequence[str]) -> bool:
    """Return whether an option would also take the texts after its own."""
    if argument.separator is not None or not texts:
        return False
    return argument.nargs in ("*", "+") or (argument.nargs == "?" and texts[-1] in argument.flags)


def _before(what: str, options: list[list[str]], unended: dict[str, list[str]]) -> list[list[str]]:
    """Return options in an order in which none of them takes the text after them as its value.

    Raises:
        ArgumentRefused: there is no such order.
    """
    last = [texts for texts in options if texts and texts not in unended.values()]
    if unended and not last:
        raise ArgumentRefused(
            next(iter(unended)),
            f"it takes any number of values, so it would take {what} too; give another argument of the "
            "script, with one value, beside it",
        )
    return [*unended.values(), *last]


def check_argument(
    name: str,
    value: ScriptArgument,
    declared: Sequence[CodeArgument],
    *,
    is_whole: bool = True,
    given_as: GivenAs = "--name value",
) -> None:
    """Check that a script can get a value; also one that it does not declare. See `command_of`.

    Raises:
        ArgumentRefused: it cannot.
    """
    argument = find_argument(name, value, declared)
    if argument is None:
        _generic(name, value, is_whole=is_whole, given_as=given_as)
    elif argument.action != "command":
        passed = passed_option if argument.flags else passed_values
        passed(argument, name, value)


def path_of(entry: str) -> str:
    """Return the file that an entry starts."""
    if entry.startswith(MODULE):
        return entry.removeprefix(MODULE).replace(".", "/") + ".py"
    return entry


def chosen_command(script: ScriptModel, declared: Sequence[CodeArgument]) -> str | None:
    """Return the command that a script is to run; None if it has none, or none is chosen.

    Raises:
        ArgumentRefused: the script has no such command.
    """
    choice = next((argument for argument in declared if argument.action == "command"), None)
    if choice is None or choice.name not in script.args:
        return None
    value, choices = script.args[choice.name], literal(choice.choices)
    # A list that is not known, or was cut, is the script's own to check.
    if choices and value not in choices:
        raise ArgumentRefused(choice.name, f"{value!r} is no command; it has {', '.join(map(str, choices))}")
    return str(value)


def find_argument(name: str, value: ScriptArgument, declared: Iterable[CodeArgument]) -> CodeArgument | None:
    """Return the argument that a name in a spec means: an option, a place, or the name in the script.

    Args:
        name: without dashes.
        value: of several options that set the same, the one that sets this value is taken.
        declared: the script's arguments.
    """
    arguments = list(declared)
    for argument in arguments:
        if name == argument.name or name in bare_names(argument):
            opposite = [other for other in _sharing(argument, arguments) if _sets(other, value)]
            return argument if not opposite or _sets(argument, value) else opposite[0]
    meant = [argument for argument in arguments if _dest(argument) == name.replace("-", "_")]
    return next((argument for argument in meant if _sets(argument, value)), meant[0] if meant else None)


def _dest(argument: CodeArgument) -> str:
    return argument.dest or default_dest(argument.flags or [argument.name])


def _sharing(argument: CodeArgument, arguments: Sequence[CodeArgument]) -> list[CodeArgument]:
    """Return the options that set the same in the script, if this one is named after it."""
    if argument.dest is not None:
        return []
    return [other for other in arguments if other is not argument and _dest(other) == _dest(argument)]


def _sets(argument: CodeArgument, value: ScriptArgument) -> bool:
    """Return whether an option sets this value by its name alone."""
    if argument.action == "constant":
        return bool(literal(argument.const) == value)
    return isinstance(value, bool) and argument.action == ("true" if value else "false")


def _generic(name: str, value: ScriptArgument, *, is_whole: bool, given_as: GivenAs) -> list[str]:
    """Pass a value to an argument that is not known: `true` is its name alone, and `false` is left out.

    Raises:
        ArgumentRefused: the script has declarations that are not known, so its text for false is not either.
    """
    if "=" in given_as:
        # Of a list, the form is that of Python, which hydra reads too.
        text = f"[{','.join(map(repr, value))}]" if isinstance(value, list) else value_text(value)
        return [given_as.replace("name", name, 1).replace("value", text, 1)]
    if isinstance(value, list):
        return [f"--{name}", *(value_text(each) for each in value)]
    if value is False and not is_whole:
        raise ArgumentRefused(
            name,
            "its declaration was not found, so without it, it may be true; leave it out if that means false, "
            "or give the text that the script reads as false in quotation marks",
        )
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return named(f"--{name}", str(value))
