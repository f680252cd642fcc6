"""Names the arguments of a script whose effect is not known."""

from collections.abc import Iterator, Sequence

from jobs.messages.code import CodeArgument, GivenAs
from jobs.messages.script_command import find_argument
from jobs.messages.script_values import FALSE_WORDS
from jobs.spec.checks.near_names import near_names
from jobs.spec.sections.script_model import ScriptArgument


def doubts_of(
    name: str,
    values: Sequence[ScriptArgument],
    declared: Sequence[CodeArgument],
    *,
    ignores_others: bool,
    given_as: GivenAs = "--name value",
) -> Iterator[str]:
    """Yield a sentence for each doubt about an argument that is passed.

    Args:
        name: of the argument.
        values: those that it may have.
        declared: the arguments that were found.
        ignores_others: whether the script passes over arguments that it does not declare.
        given_as: how others are passed.
    """
    if "=" in given_as or find_argument(name, values[0], declared) is not None:
        return
    if ignores_others:
        near = near_names(name, [each.name.lstrip("-") for each in declared])
        meant = f" (is {near[0]!r} meant?)" if near else ""
        yield (
            f"no declaration of {name!r} was found{meant}, and the script passes over arguments that it does "
            "not declare, since it calls parse_known_args: the value may have no effect"
        )
    if text := next((each for each in values if isinstance(each, str) and each.lower() in FALSE_WORDS), None):
        yield (
            f"{name!r} gets the text {text!r}, and how the script reads it is not known, since its "
            "declaration was not found: with type=bool, every text but the empty one counts as true"
        )
