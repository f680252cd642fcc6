"""Makes the command that starts a script: each argument as the script's parser wants it."""

from collections.abc import Iterable, Sequence

from jobs.messages.code import CodeArgument
from jobs.messages.script_values import (
    NEGATIVE,
    ArgumentRefused,
    bare_names,
    literal,
    named,
    passed_option,
    passed_values,
    value_text,
)
from jobs.spec.sections.script_model import MODULE, ScriptArgument, ScriptModel


def command_of(script: ScriptModel, declared: Sequence[CodeArgument]) -> list[str]:
    """Return the interpreter's arguments: the script or module with its own arguments.

    Args:
        script: the script with all its values.
        declared: the arguments that it declares; others are passed as `--name value`.

    Raises:
        ArgumentRefused: the script would not get a value as it is recorded.
    """
    module = script.entry.removeprefix(MODULE) if script.entry.startswith(MODULE) else ""
    start = ["-m", module] if module else [script.entry]
    chosen = chosen_command(script, declared)
    usable = [argument for argument in declared if argument.command in (None, chosen)]
    options: dict[str | None, list[str]] = {None: [], chosen: []}
    places: dict[str | None, dict[int, list[str]]] = {None: {}, chosen: {}}
    given: dict[str, str] = {}
    for name, value in script.args.items():
        argument = find_argument(name, value, usable)
        if argument is not None and (other := given.setdefault(_dest(argument), name)) != name:
            raise ArgumentRefused(name, f"it is the same argument as {other!r}; leave one of them out")
        if argument is None:
            if any(find_argument(name, value, [other]) for other in declared):
                raise ArgumentRefused(name, f"the command {chosen!r} has no such argument")
            options[None] += _generic(name, value)
        elif argument.flags:
            options[argument.command] += passed_option(argument, name, value)
        elif argument.action != "command":
            places[argument.command][usable.index(argument)] = passed_values(argument, name, value)
    start += _joined(places[None], options[None])
    return start if chosen is None else [*start, chosen, *_joined(places[chosen], options[chosen])]


def check_argument(name: str, value: ScriptArgument, declared: Sequence[CodeArgument]) -> None:
    """Check that a script can get a value; also one that it does not declare.

    Raises:
        ArgumentRefused: it cannot.
    """
    argument = find_argument(name, value, declared)
    if argument is not None and argument.action != "command":
        passed = passed_option if argument.flags else passed_values
        passed(argument, name, value)


def path_of(entry: str) -> str:
    """Return the file that an entry starts."""
    if entry.startswith(MODULE):
        return entry.removeprefix(MODULE).replace(".", "/") + ".py"
    return entry


def _joined(places: dict[int, list[str]], options: list[str]) -> list[str]:
    """Return the arguments without names before the options, or after `--` if one begins with a dash."""
    given = [text for _, texts in sorted(places.items()) for text in texts]
    if any(text.startswith("-") and not NEGATIVE.fullmatch(text) for text in given):
        return [*options, "--", *given]
    return [*given, *options]


def chosen_command(script: ScriptModel, declared: Sequence[CodeArgument]) -> str | None:
    """Return the command that a script is to run; None if it has none, or none is chosen.

    Raises:
        ArgumentRefused: the script has no such command.
    """
    choice = next((argument for argument in declared if argument.action == "command"), None)
    if choice is None or choice.name not in script.args:
        return None
    value, choices = script.args[choice.name], literal(choice.choices) or []
    if value not in choices:
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
    return argument.dest or dest_of(argument.flags or [argument.name])


def dest_of(names: Sequence[str]) -> str:
    """Return the name under which a script reads an argument that gives no other."""
    first = next((name for name in names if name.startswith("--")), names[0])
    return first.lstrip("-").replace("-", "_")


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


def _generic(name: str, value: ScriptArgument) -> list[str]:
    """Pass a value to an argument that is not known: `true` is its name alone, and `false` is left out."""
    if isinstance(value, list):
        return [f"--{name}", *(value_text(each) for each in value)]
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return named(f"--{name}", str(value))
