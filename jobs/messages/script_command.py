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
    chosen = chosen_commands(script, declared)
    # Of two with one name, that of the last command counts: its default replaces the value of the other.
    usable = [each for command in reversed(chosen) for each in declared if each.command == command]
    levels: dict[str | None, _Level] = {command: _Level(command, usable) for command in chosen}
    given: dict[str, str] = {}
    for name, value in script.args.items():
        argument = find_argument(name, value, usable)
        if argument is not None and (other := given.setdefault(_dest(argument), name)) != name:
            raise ArgumentRefused(name, f"it is the same argument as {other!r}; leave one of them out")
        if argument is None:
            if owner := find_argument(name, value, declared):
                raise ArgumentRefused(name, why_not_of(chosen[-1], owner, declared))
            texts = _generic(name, value, is_whole=is_whole, given_as=given_as)
            # One that was not found may belong to the command, whose parser has more than those found.
            level = levels[None if is_whole else chosen[-1]]
            level.options.append(texts)
            # A name alone is most often an option that takes no value.
            if isinstance(value, list) and len(texts) > 1:
                level.unended[name] = texts
        elif argument.action != "command":
            levels[argument.command].add(argument, name, value)
    rest = _rest_of(chosen[-1], usable)
    command = start
    for place, level in enumerate(levels.values()):
        command += [level.command.rpartition(" ")[2]] if level.command is not None else []
        if place < len(levels) - 1:
            command += level.before_command()
        else:
            command += level.texts(rest, is_parsed=given_as != "value")
    return command


class _Level:
    """The arguments of a script or of one of its commands, in the order in which it gets them.

    Attributes:
        command: the command; None for the script itself.
        options: the texts of each option.
        unended: those that would take the texts after them too, by their names.
    """

    def __init__(self, command: str | None, usable: Sequence[CodeArgument]) -> None:
        self.command = command
        self.options: list[list[str]] = []
        self.unended: dict[str, list[str]] = {}
        self._order = _places_of(command, usable)
        self._places: dict[int, list[str]] = {}

    def add(self, argument: CodeArgument, name: str, value: ScriptArgument) -> None:
        """Add the value of one of its arguments."""
        if not argument.flags:
            self._places[self._order.index(argument)] = passed_values(argument, name, value)
            return
        texts = passed_option(argument, name, value)
        if _takes_more(argument, texts):
            self.unended[name] = texts
        self.options.append(texts)

    def before_command(self) -> list[str]:
        """Return its texts, after which the name of a command follows."""
        return joined(self._given(), _before("the command", self.options, self.unended), is_last=False)

    def texts(self, rest: str, *, is_parsed: bool) -> list[str]:
        """Return its texts, after which nothing follows, or `rest`, the place that takes all."""
        places, options = self._given(), self.options
        if rest and places and self.command is None:
            options = _before("what follows", options, self.unended)
        return joined(places, options, rest, is_parsed=is_parsed)

    def _given(self) -> list[str]:
        return passed_places(self._order, self._places)


def why_not_of(chosen: str | None, owner: CodeArgument, declared: Sequence[CodeArgument]) -> str:
    """Return why an argument of another command is not passed."""
    if chosen is not None and not (owner.command or "").startswith(f"{chosen} "):
        return f"the command {chosen!r} has no such argument"
    choice = _choice_of(chosen, declared)
    name = choice.name if choice is not None else "command"
    return f"it belongs to the command {owner.command!r}; give the argument {name!r} with it too"


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


def chosen_commands(script: ScriptModel, declared: Sequence[CodeArgument]) -> list[str | None]:
    """Return None for the script itself, then its command, and the command of this command.

    Raises:
        ArgumentRefused: the script has no such command.
    """
    chosen: list[str | None] = [None]
    while (choice := _choice_of(chosen[-1], declared)) is not None and choice.name in script.args:
        value, choices = script.args[choice.name], literal(choice.choices)
        # A list that is not known, or was cut, is the script's own to check.
        if choices and value not in choices:
            listed = ", ".join(map(str, choices))
            raise ArgumentRefused(choice.name, f"{value!r} is no command; it has {listed}")
        chosen.append(str(value) if chosen[-1] is None else f"{chosen[-1]} {value}")
    return chosen


def _choice_of(command: str | None, declared: Sequence[CodeArgument]) -> CodeArgument | None:
    """Return the choice between the commands of a script, or of one of its commands."""
    return next((each for each in declared if each.action == "command" and each.command == command), None)


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
            "its declaration was not found, so how the script reads false is not known: leave it out if that "
            'means false, or give the text that it reads as false in quotation marks. With type=bool only "" '
            'is false; "False" and "false" count as true there',
        )
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return named(f"--{name}", str(value))
