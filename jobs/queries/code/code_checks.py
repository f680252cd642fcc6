"""Checks that a project has the code that a spec names, with the script in it."""

from jobs.models import CodeVersion, Project
from jobs.queries.code import script_checks, script_outputs
from jobs.spec.checks.near_names import near_names
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.sections.script_model import MODULE, ScriptModel


def code_problems(project: Project, spec: ExperimentSpec) -> list[Problem]:
    """Return why a spec's code cannot run in a project, with pointers into the spec."""
    digest = spec.model.code_digest
    if digest is None:
        return []
    version = CodeVersion.objects.filter(project=project, digest=digest).first()
    if version is None:
        return [
            Problem("/model/digest", f"{project.slug} has no code {digest[:8]}; upload it, or name another")
        ]
    if not isinstance(spec.model, ScriptModel):
        return []
    return [
        *_script_problems(version, spec.model),
        *script_checks.argument_problems(version, spec, spec.model),
        *script_outputs.output_problems(version, spec, spec.model),
    ]


def _script_problems(version: CodeVersion, script: ScriptModel) -> list[Problem]:
    paths = version.files.values_list("path", flat=True)
    if script.entry.startswith(MODULE):
        top = script.entry.removeprefix(MODULE).partition(".")[0]
        if any(path == f"{top}.py" or path.startswith(f"{top}/") for path in paths):
            return []
        return [Problem("/model/entry", f"{version} has no module {top!r}")]
    if script.entry in paths:
        return []
    scripts = [path for path in paths if path.endswith(".py")]
    near = near_names(script.entry, scripts) or sorted(scripts)[:5]
    return [
        Problem("/model/entry", f"{version} has no file {script.entry!r}; it has {', '.join(near)}"),
    ]
