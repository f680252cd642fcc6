"""Collects a version's files, and looks for the parts that Trainyard knows."""

import platform
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from jobs.messages.code import (
    MAX_ARGUMENTS,
    MAX_ARGUMENTS_OF_ALL,
    MAX_FOUND,
    MAX_PARSED_BYTES,
    CodeEntry,
    CodeFound,
    CodeNotice,
    CodePackages,
    CodeProblem,
    CodeSearch,
    KeptFile,
    Reading,
    ReadRequest,
)
from workers.code_reader import packages
from workers.code_reader.builders import LOOKED_FOR
from workers.code_reader.definitions import Definitions
from workers.code_reader.described_search import TEMPLATES, notices_of_templates, searches_of, training_of
from workers.code_reader.files import SourceFile, collect
from workers.code_reader.limits import Budget
from workers.code_reader.missing_packages import Surroundings, surroundings_of
from workers.code_reader.modules import Module, Unreadable
from workers.code_reader.notebooks import Notebook
from workers.code_reader.own_loops import notices_of_loops, own_loops, script_of_loop
from workers.code_reader.tensorflow_imports import TENSORFLOW, notices_of_tensorflow, with_keras
from workers.code_reader.undefined_names import undefined_names

PARSE_SECONDS = 10.0
"""Files that come after so much processor time are kept unread."""


def read(request: ReadRequest) -> Reading:
    """Return a version's files and the findings about them.

    Raises:
        BadArchive: a file is refused; the message names it and the reason.
    """
    files, left_out = collect(request.files, keeps_paths=request.definitions_only)
    if request.definitions_only:
        files = _with_definitions_only(files)
    folder = Path(request.into)
    for number, file in enumerate(files):
        # Never by the name that the sender gave.
        (folder / str(number)).write_bytes(file.body)
    code_files = [
        KeptFile(path=file.path, number=number, bytes=len(file.body), lines=file.lines)
        for number, file in enumerate(files)
    ]
    return Reading(files=code_files, found=_find(files, left_out))


def _find(files: list[SourceFile], left_out: int) -> CodeFound:
    modules, problems = _parse([file for file in files if file.is_python])
    entries = _entries(modules, problems)
    code_packages = _packages(files, problems)
    scripts, loops = _loops(modules, entries)
    started = {script.path for script in scripts}
    imported = [module for module in modules if module.path not in started]
    runs, searches, lost = _notebooks(imported, entries, code_packages)
    entries += scripts
    lost = loops + lost
    is_unread = any(problem.path.endswith(".py") for problem in problems)
    if not entries and not lost and modules and not is_unread:
        message = f"nothing that Trainyard can use was found; it looks for {LOOKED_FOR}"
        lost.append(CodeNotice(path=modules[0].path, message=message))
    lost += _undefined(modules, entries)
    return CodeFound(
        python=".".join(platform.python_version_tuple()[:2]),
        entries=_bounded(entries[:MAX_FOUND]),
        problems=problems[:MAX_FOUND],
        notices=lost[:MAX_FOUND],
        runs=runs[:MAX_FOUND],
        search=next((search for search in reversed(searches) if search.tuner), None),
        searches=searches[:MAX_FOUND],
        packages=code_packages,
        left_out=left_out,
    )


def _parse(files: list[SourceFile]) -> tuple[list[Module], list[CodeProblem]]:
    modules, problems, budget = [], [], Budget(PARSE_SECONDS)
    for file in files:
        if len(file.body) > MAX_PARSED_BYTES:
            message = f"has more than {MAX_PARSED_BYTES:,} bytes, so nothing is looked for in it"
            problems.append(CodeProblem(path=file.path, message=message))
        elif budget.is_spent:
            message = "was not read: the files before it took too long"
            problems.append(CodeProblem(path=file.path, message=message))
        else:
            try:
                modules.append(Module.parse(file))
            except Unreadable as error:
                problems.append(error.problem)
    return modules, problems


def _entries(modules: list[Module], problems: list[CodeProblem]) -> list[CodeEntry]:
    definitions = Definitions(modules)
    entries: list[CodeEntry] = []
    for module in modules:
        try:
            found = definitions.entries_of(module)
            entries += [_of_notebook(entry) for entry in found] if module.magics else found
        except (RecursionError, MemoryError):
            message = "is nested too deeply to look for anything in it"
            problems.append(CodeProblem(path=module.path, message=message))
    return entries


def _loops(modules: list[Module], entries: list[CodeEntry]) -> tuple[list[CodeEntry], list[CodeNotice]]:
    """Return the files that train by loops of their own as scripts, and notices about these loops."""
    scripts: list[CodeEntry] = []
    notices: list[CodeNotice] = []
    known = {entry.path for entry in entries if entry.kind in ("build_model", "hypermodel", "script")}
    for module in modules:
        try:
            loops = own_loops(module) if module.path not in known else []
            if not loops or Notebook(module).functions():
                continue
            notices += islice(notices_of_loops(module, loops), MAX_FOUND)
            script = script_of_loop(module, loops)
            scripts += [script] if script is not None else []
        except (RecursionError, MemoryError):
            continue
    return scripts, notices


def _of_notebook(entry: CodeEntry) -> CodeEntry:
    """Return an entry of a file that Python cannot read before its other lines are left out."""
    note = entry.note or "Its file has lines that only a notebook understands: keep the definitions alone."
    return entry.model_copy(update={"note": note})


def _with_definitions_only(files: list[SourceFile]) -> list[SourceFile]:
    """Return the files without the statements that run when they are imported, if they have such."""
    problems: list[CodeProblem] = []
    modules, _ = _parse([file for file in files if file.is_python])
    entries = _entries(modules, problems)
    by_path = _surroundings(modules, entries, _packages(files, problems))
    return [_definitions_of(file, by_path[file.path]) if file.path in by_path else file for file in files]


def _surroundings(
    modules: list[Module], entries: list[CodeEntry], packages: CodePackages | None
) -> dict[str, Surroundings]:
    """Return which parts of each file are needed, by its path."""
    brings = packages is not None and bool(packages.requirements)
    return surroundings_of(modules, entries, brings_packages=brings)


def _definitions_of(file: SourceFile, surroundings: Surroundings) -> SourceFile:
    module = Module.parse(file)
    notebook = Notebook(module, surroundings)
    if notebook.leaves_out:
        text = notebook.text()
        file = SourceFile(file.path, text.encode(), text)
        module = Module.parse(file)
    # Afterwards, since a line that was left out may have used other parts of TensorFlow.
    if any(notices_of_tensorflow(module)):
        text = with_keras(module)
        file = SourceFile(file.path, text.encode(), text)
    return file


def _notebooks(
    modules: list[Module], entries: list[CodeEntry], packages: CodePackages | None
) -> tuple[list[CodeNotice], list[CodeSearch], list[CodeNotice]]:
    """Return the statements that run, the searches that they describe, and names that are lost with them.

    A file with a script alone is started to run, and not imported.
    """
    imported = {entry.path for entry in entries if entry.kind != "script"}
    scripts = {entry.path for entry in entries if entry.kind == "script"}
    wanted = packages.requirements if packages is not None else []
    brings_tensorflow = any(line.lower().startswith(TENSORFLOW) for line in wanted)
    runs: list[CodeNotice] = []
    lost: list[CodeNotice] = []
    searches: list[CodeSearch] = []
    surroundings = _surroundings(modules, entries, packages)
    for module in modules:
        try:
            notebook = Notebook(module, surroundings[module.path])
            if module.path not in scripts:
                lost += notebook.own_tuners()
            if module.path not in imported and not module.magics and not notebook.trained:
                continue
            if not brings_tensorflow:
                runs += islice(notebook.replaced_imports(), MAX_FOUND)
            if notebook.leaves_out:
                runs += islice(notebook.notices(), MAX_FOUND)
                lost += notebook.lost_names()
                lost += notebook.models()
                described = searches_of(module)
                lost += notices_of_templates(described)
                searches += [_known(search, entries) for search in described]
                searches += [training_of(module, each.call, each.function) for each in notebook.functions()]
        except (RecursionError, MemoryError):
            continue
    return runs, searches, lost


def _undefined(modules: list[Module], entries: list[CodeEntry]) -> Iterator[CodeNotice]:
    """Yield the names that entries use and no line defines; of files without entries, all such names."""
    for module in modules:
        found = [entry for entry in entries if entry.path == module.path]
        if found and all(entry.kind == "script" for entry in found):
            continue
        try:
            yield from undefined_names(module, {entry.name.partition(".")[0] for entry in found})
        except (RecursionError, MemoryError):
            continue


def _known(search: CodeSearch, entries: list[CodeEntry]) -> CodeSearch:
    """Return a search without its entry if the code has none of this name: a lambda, for example."""
    if search.entry in TEMPLATES or search.entry in {entry.name for entry in entries}:
        return search
    return search.model_copy(update={"entry": None})


def _bounded(entries: list[CodeEntry]) -> list[CodeEntry]:
    """Return the entries with so many arguments that version lists can load them."""
    left, bounded = MAX_ARGUMENTS_OF_ALL, []
    for entry in entries:
        arguments = entry.arguments[: min(MAX_ARGUMENTS, left)]
        left -= len(arguments)
        more = len(entry.arguments) - len(arguments)
        bounded.append(entry.model_copy(update={"arguments": arguments, "more_arguments": more}))
    return bounded


def _packages(files: list[SourceFile], problems: list[CodeProblem]) -> CodePackages | None:
    """Return the packages in the first file in the outermost folder that lists any."""
    by_path = {file.path: file for file in files}
    for name, parse in (("requirements.txt", packages.requirements), ("pyproject.toml", packages.project)):
        if (file := by_path.get(name)) is None:
            continue
        try:
            if (code_packages := parse(file)) is not None:
                return code_packages
        except packages.UnreadablePackages as error:
            problems.append(error.problem)
    return None
