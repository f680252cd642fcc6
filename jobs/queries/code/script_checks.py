"""Checks an experiment with a script against the arguments that the script declares."""

from collections.abc import Iterator, Sequence
from typing import Any

from jobs.messages.code import CodeArgument, CodeEntry
from jobs.messages.script_command import (
    check_argument,
    chosen_commands,
    command_of,
    find_argument,
    path_of,
    why_not_of,
)
from jobs.messages.script_doubts import doubts_of
from jobs.messages.script_values import ArgumentRefused
from jobs.models import CodeVersion, Job, Project
from jobs.spec.checks.near_names import near_names
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, escaped
from jobs.spec.sections.script_model import ScriptModel
from jobs.spec.space.search_space import FloatParameter, IntParameter, Parameter, Space, Value, Values

PART = 0.618
"""A place inside a range of numbers that is no whole number by chance."""


def script_entry(version: CodeVersion, entry: str) -> CodeEntry | None:
    """Return the findings about a script; None without any, or if an earlier release has made them."""
    path = path_of(entry)
    found = next((e for e in version.findings.entries if e.kind == "script" and e.path == path), None)
    if found is None or any(a.name.startswith("-") and not a.flags for a in found.arguments):
        return None
    return found


def argument_problems(version: CodeVersion, spec: ExperimentSpec, script: ScriptModel) -> Iterator[Problem]:
    """Yield the arguments that a script would not get as they are recorded, and those that it needs."""
    entry = script_entry(version, script.entry)
    if entry is None or not (entry.arguments or entry.note):
        return
    try:
        chosen = chosen_commands(script, entry.arguments)
    except ArgumentRefused as error:
        yield Problem(f"/model/args/{escaped(error.name)}", str(error))
        return
    space = spec.search.space if spec.search is not None else ()
    given = {name: [value] for name, value in script.args.items()}
    for name, values in given.items():
        yield from _problems(f"/model/args/{escaped(name)}", name, values, chosen, entry)
    for place, row in enumerate(space):
        yield from _problems(f"/search/space/{place}/name", row.name, _examples(row), chosen, entry)
    yield from _missing(script, space, _usable(chosen, entry))


def argument_warnings(project: Project, spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield warnings about arguments whose effect is not known."""
    script = spec.model
    if not isinstance(script, ScriptModel):
        return
    version = CodeVersion.objects.filter(project=project, digest=script.digest).first()
    entry = script_entry(version, script.entry) if version is not None else None
    if entry is None:
        return
    space = spec.search.space if spec.search is not None else ()
    given: list[tuple[str, str, Sequence[Any]]] = [
        (f"/model/args/{escaped(name)}", name, [value]) for name, value in script.args.items()
    ]
    given += [(f"/search/space/{n}/name", row.name, _examples(row)) for n, row in enumerate(space)]
    for pointer, name, values in given:
        doubts = doubts_of(
            name, values, entry.arguments, ignores_others=entry.ignores_others, given_as=entry.given_as
        )
        yield from (Problem(pointer, doubt) for doubt in doubts)


def _usable(chosen: Sequence[str | None], entry: CodeEntry) -> list[CodeArgument]:
    """Return the arguments of a script with its chosen commands, those of the last command first."""
    return [each for command in reversed(chosen) for each in entry.arguments if each.command == command]


def _problems(
    pointer: str, name: str, values: Sequence[Any], chosen: Sequence[str | None], entry: CodeEntry
) -> Iterator[Problem]:
    declared = _usable(chosen, entry)
    owner = find_argument(name, values[0], entry.arguments)
    if owner is not None and find_argument(name, values[0], declared) is None:
        yield Problem(pointer, f"{name!r}: {why_not_of(chosen[-1], owner, entry.arguments)}")
        return
    is_whole = not entry.note and not entry.more_arguments
    if is_whole and find_argument(name, values[0], declared) is None:
        names = [argument.name.lstrip("-") for argument in declared]
        near = near_names(name, names)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}"
        yield Problem(pointer, f"{entry.path} has no argument {name!r}; {hint}")
    for value in values:
        try:
            check_argument(name, value, declared, is_whole=is_whole, given_as=entry.given_as)
        except ArgumentRefused as error:
            yield Problem(pointer, str(error))
            return


def _examples(row: Parameter) -> list[Value]:
    """Return values that a search may choose, so that each kind of value occurs."""
    if isinstance(row, FloatParameter):
        return [row.min + (row.max - row.min) * PART] if row.step is None else [*row.grid()[:3]]
    return [row.min, row.max] if isinstance(row, IntParameter) else [*row.grid()]


def _missing(script: ScriptModel, space: Space, declared: list[CodeArgument]) -> Iterator[Problem]:
    given = [*script.args.items(), *((row.name, _examples(row)[0]) for row in space)]
    found = [find_argument(name, value, declared) for name, value in given]
    for argument in declared:
        if argument.default is None and argument not in found:
            yield Problem("/model/args", f"{script.entry} needs the argument {argument.name!r}")


def command_of_trial(job: Job, values: Values) -> list[str]:
    """Return the command of a script in a trial; empty if only the log has it."""
    spec = job.revision.spec if job.revision is not None else None
    if spec is None or job.project is None or not isinstance(spec.model, ScriptModel):
        return []
    version = CodeVersion.objects.filter(project=job.project, digest=spec.model.digest).first()
    entry = script_entry(version, spec.model.entry) if version is not None else None
    if entry is None or entry.more_arguments:
        return []
    try:
        return command_of(
            spec.model.with_arguments(values),
            entry.arguments,
            is_whole=not entry.note,
            given_as=entry.given_as,
        )
    except ArgumentRefused:
        return []
