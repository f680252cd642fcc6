"""Describes a script's arguments, and how they are passed."""

from jobs.messages.code import CodeArgument, CodeEntry
from jobs.messages.script_values import choices_in, describe_choices, literal


def describe_argument(argument: CodeArgument) -> str:
    """Return the help, the choices and the default that a script declares for an argument."""
    parts = [argument.help] if argument.help else []
    if choices := choices_in(argument.choices):
        parts.append(f"O{describe_choices(choices)[1:]}")
    if argument.default is None:
        parts.append("Required")
    elif argument.default != "None":
        parts.append(f"Default: {argument.default}")
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)


def describe_passing(argument: CodeArgument) -> str:
    """Return how a truth value or several values are passed; empty for a single value."""
    flag, default = argument.name, literal(argument.default)
    if argument.action == "boolean":
        return f"true passes {flag}, false passes {argument.off}"
    if argument.action in ("true", "false"):
        sets = argument.action == "true"
        other = "passes nothing" if default is not sets else "cannot be passed"
        return f"{str(sets).lower()} passes {flag}, {str(not sets).lower()} {other}"
    if argument.action == "count":
        return f"a number of 3 passes {flag} three times"
    if argument.takes_several:
        return "several values, separated by spaces or commas"
    if argument.words and argument.annotation not in ("int", "float"):
        true, false = argument.words
        return f"true is passed as {true!r}, false as {false!r}"
    return ""


def describe_others(entry: CodeEntry | None) -> str:
    """Return how an argument is passed that was not found among a script's declarations."""
    if entry is not None and "=" in entry.given_as:
        return f"It reads others as {entry.given_as}, also true and false."
    if entry is None or not (entry.note or entry.arguments):
        return "true passes the name of an argument alone, as a flag, and false leaves it out."
    if not entry.note:
        return "All its arguments were found; others are refused."
    return (
        f"{entry.note} Of an argument that was not found, true passes the name alone, as a flag. false is "
        "refused, since only the script knows which text it reads as false: leave the argument out, or enter "
        'that text in quotation marks. With type=bool that is "" alone: "False" counts as true there.'
    )
