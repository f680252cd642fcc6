"""Checks that a script which shall register a model writes one."""

from collections.abc import Iterator

from jobs.models import CodeFile, CodeVersion
from jobs.queries.code.code import files_of
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.script_model import MODEL_FILE, MODULE, ScriptModel
from jobs.store import store

SUFFIX = f".{MODEL_FILE.rpartition('.')[2]}"
MOST_BYTES = 2**20
"""A larger file is data rather than a script or its settings."""


def output_problems(version: CodeVersion, spec: ExperimentSpec, script: ScriptModel) -> Iterator[Problem]:
    """Yield a problem if a version of a model is wanted, and nothing names a model's file.

    A file may be named by the code, by its settings, or by an argument. A module may be installed, and is not
    searched.
    """
    if spec.after.register_ is None or script.entry.startswith(MODULE):
        return
    values = [*script.args.values(), *script.env.values()]
    if any(SUFFIX in str(value) for value in values) or any(map(_names_model, files_of(version))):
        return
    yield Problem(
        "/after/register",
        f"nothing in {version} names a {SUFFIX} file: let the script save its model as {MODEL_FILE} in the "
        "folder that TRAINYARD_OUTPUT names, or register none",
    )


def _names_model(file: CodeFile) -> bool:
    if file.lines is None or file.artifact.bytes > MOST_BYTES:
        return False
    return SUFFIX.encode() in store().path(file.artifact_id).read_bytes()
