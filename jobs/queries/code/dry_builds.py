"""Reads dry builds, and checks models built by code against the findings about that code."""

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import NamedTuple

from jobs.answers.code.code import DryBuildOut
from jobs.kinds.dry_build.payload import DryBuildPayload, DryBuildResult
from jobs.kinds.dry_build.rows import dry_builds_of
from jobs.messages.code import CodeArgument, CodeEntry
from jobs.models import CodeVersion, DatasetVersion, Job, Project
from jobs.models.job import JobQuerySet
from jobs.queries.data.causes import cause_of
from jobs.queries.requested_jobs import NOT_REQUESTED, answering_job, key_of
from jobs.spec.checks.dry_build import BuiltModel, DataShape, unused_problems
from jobs.spec.checks.near_names import near_names
from jobs.spec.data.encoding import encoded, roles_differ
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, escaped
from jobs.spec.sections.code_model import CODE_ENTRIES, OWN_FIT, CodeModel
from jobs.spec.space.search_space import Space, Values
from jobs.states import WAITING, JobState

EXPLORATION = 4
"""The version of the rules that find hyperparameters and variables. Builds of other versions are done again.
"""


class DryBuildRequest(NamedTuple):
    """A model that own code builds, and the project that has the code.

    Attributes:
        project: has the code.
        payload: the model.
        earlier_keys: under which earlier releases have stored their dry builds of the same.
    """

    project: Project
    payload: DryBuildPayload
    earlier_keys: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the job's title."""
        return f"Dry build of {self.payload.model.entry}"

    @property
    def jobs(self) -> JobQuerySet:
        """Return the project's dry builds that build the same, newest first."""
        same = Job.objects.filter(dry_builds_of(self.payload.key), project=self.project)
        return same.order_by("-pk")


class DryBuild(NamedTuple):
    """A dry build with its code, its data and its result, for its job's page.

    Attributes:
        request: its payload.
        code: the code version; None if it was deleted.
        version: the data for whose shape the model is built; None if they were deleted.
        built: the model; None before the job is completed.
    """

    request: DryBuildPayload
    code: CodeVersion | None
    version: DatasetVersion | None
    built: BuiltModel | None


def dry_build_of_job(job: Job) -> DryBuild:
    """Return the dry build that a job does."""
    payload = job.payload_as(DryBuildPayload)
    codes = CodeVersion.objects.filter(project=job.project, digest=payload.model.digest)
    code = codes.select_related("project").first()
    versions = DatasetVersion.objects.filter(pk=payload.dataset_version or 0, dataset__deletion=None)
    version = versions.select_related("dataset__project").defer("profile_json").first()
    return DryBuild(payload, code, version, result_of_job(job) if job.state == JobState.COMPLETED else None)


def model_problems(project: Project, model: CodeModel) -> Iterator[Problem]:
    """Yield the problems that prevent code from building a model, as far as its findings show them."""
    version = CodeVersion.objects.filter(project=project, digest=model.digest).first()
    # `code_checks` reports it.
    if version is None:
        return
    entries, named = _entries_of(version, model)
    if len(named) != 1:
        yield Problem("/model/entry", _why_no_entry(version, model, entries, named))
        return
    (entry,) = named
    if entry.note:
        yield Problem("/model/entry", f"{model.entry} cannot build a model: {entry.note}")
    yield from _argument_problems(model, entry)


def _entries_of(version: CodeVersion, model: CodeModel) -> tuple[list[CodeEntry], list[CodeEntry]]:
    """Return the entries that build models, and those of them that a model names."""
    entries = [entry for entry in version.findings.entries if entry.kind in CODE_ENTRIES]
    return entries, [e for e in entries if e.name == model.name and model.path in ("", e.path)]


def settings_problems(project: Project, spec: ExperimentSpec, model: CodeModel) -> list[Problem]:
    """Return the settings without effect, as far as findings about the code show them, before a dry build."""
    version = CodeVersion.objects.filter(project=project, digest=model.digest).first()
    named = _entries_of(version, model)[1] if version is not None else []
    has_fit = any("fit" in entry.methods for entry in named)
    return list(unused_problems(spec, OWN_FIT)) if has_fit else []


def _why_no_entry(
    version: CodeVersion, model: CodeModel, entries: list[CodeEntry], named: list[CodeEntry]
) -> str:
    if named:
        paths = " or ".join(f"{entry.path}:{entry.name}" for entry in named)
        return f"{version} has several entries named {model.name}: use {paths}"
    available = ", ".join(dict.fromkeys(entry.name for entry in entries))
    advice = "it has none: a function build_model(hp) or a HyperModel class"
    has = f"it has {available}" if available else advice
    return f"{version} has no entry {model.entry!r} that builds a model; {has}"


def _argument_problems(model: CodeModel, entry: CodeEntry) -> Iterator[Problem]:
    # A function is called with the hyperparameters alone.
    arguments = entry.arguments if entry.kind == "hypermodel" else []
    by_name = {argument.name: argument for argument in arguments if not argument.name.startswith("*")}
    takes_any = any(argument.name.startswith("**") for argument in arguments) or entry.more_arguments
    for name in model.args:
        if name not in by_name and not takes_any:
            near = near_names(name, by_name)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it takes {', '.join(by_name) or 'none'}"
            yield Problem(f"/model/args/{escaped(name)}", f"{model.name} has no argument {name!r}{hint}")
    for name, argument in by_name.items():
        if argument.default is None and name not in model.args:
            yield Problem("/model/args", f"{model.name} needs the argument {name!r}")


def fields_of_entry(entry: CodeEntry) -> list[CodeArgument]:
    """Return the arguments that a form asks for, for one entry."""
    if entry.kind != "hypermodel":
        return []
    return [argument for argument in entry.arguments if not argument.name.startswith("*")]


def dry_build_request(
    project: Project, spec: ExperimentSpec, version: DatasetVersion, profile: Profile
) -> DryBuildRequest:
    """Return the dry build that an experiment with own code needs.

    Raises:
        TypeError: own code does not build its model.
    """
    if not isinstance(spec.model, CodeModel):
        raise TypeError(f"{spec.model.info.name} is not own code")
    model = spec.model.model_copy(update={"hyperparameters": {}})
    shape = None
    if not roles_differ(spec, profile):
        shape = DataShape.from_schema(encoded(spec, profile))
    built_for: object = (
        shape.model_dump() if shape is not None else [version.pk, spec.required_data.model_dump_json()]
    )
    built = [model.model_dump(), built_for]
    # The first releases had no version.
    earlier = [built, *([*built, rules] for rules in range(1, EXPLORATION))]
    payload = DryBuildPayload(
        dataset_version=version.pk,
        model=model,
        shape=shape,
        data=spec.required_data,
        texts=spec.texts,
        key=key_of([*built, EXPLORATION]),
    )
    return DryBuildRequest(project, payload, tuple(map(key_of, earlier)))


def build_result(request: DryBuildRequest) -> BuiltModel | None:
    """Return a dry build's result; None if none is completed."""
    row = request.jobs.filter(state=JobState.COMPLETED).first()
    return None if row is None else result_of_job(row)


def built_before(request: DryBuildRequest) -> BuiltModel | None:
    """Return the result of an earlier release, with which jobs of that time have run."""
    any_key = reduce(or_, map(dry_builds_of, request.earlier_keys))
    same = Job.objects.filter(any_key, project=request.project)
    row = same.filter(state=JobState.COMPLETED).order_by("-pk").first()
    return None if row is None else result_of_job(row)


def failure_problems(request: DryBuildRequest) -> list[Problem]:
    """Return the cause if the last dry build has failed. A person may repeat it."""
    job = request.jobs.first()
    if job is None or job.state != JobState.FAILED:
        return []
    cause = cause_of(job.error)
    why = cause["message"].strip().rstrip(".") if cause is not None else "its cause is not known"
    message = f"the dry build of this code failed: {why}. Change the code, or build it again"
    return [Problem("/model/entry", message, job.pk)]


def built_model(job: Job) -> BuiltModel | None:
    """Return the model that a job's code builds. None for other models, or if it is unknown."""
    request = request_of_job(job)
    return None if request is None else build_result(request) or built_before(request)


def why_unsaved(job: Job) -> str:
    """Return why a job's model cannot be saved, as its dry build found it; empty if it can."""
    built = built_model(job)
    return built.unsaved if built is not None else ""


def unasked_names(search: Job, values: Values) -> set[str]:
    """Return the searched hyperparameters that have no effect beside these values.

    The code sets a field of the fit itself, or does not ask for a hyperparameter beside another's value.
    """
    built, spec = built_model(search), search.revision.spec if search.revision is not None else None
    if built is None or spec is None:
        return set()
    unused = {name for name in values if spec.model.info.why_unused(name, built.unused) is not None}
    return unused.union(*(each.names for each in built.unasked if each.applies_to(values)))


def request_of_job(job: Job) -> DryBuildRequest | None:
    """Return the dry build that a job with own code needs. None for other models, or without data."""
    spec = job.revision.spec if job.revision is not None else None
    if spec is None or job.project is None or not isinstance(spec.model, CodeModel):
        return None
    version = DatasetVersion.objects.filter(pk=job.payload.dataset_version or 0).first()
    profile = version.profile if version is not None else None
    if version is None or profile is None:
        return None
    return dry_build_request(job.project, spec, version, profile)


def declared_space(search: Job) -> Space:
    """Return the space that a search's code declares. Empty for other models."""
    spec = search.revision.spec if search.revision is not None else None
    if spec is None or spec.search is None or not isinstance(spec.model, CodeModel):
        return ()
    if (model := built_model(search)) is not None:
        return model.space
    return tuple(row for row in spec.search.space if spec.model.info.fit_field(row.name) is None)


def result_of_job(job: Job) -> BuiltModel:
    """Return a completed dry build's result."""
    return DryBuildResult.model_validate(job.results_json).built


def dry_build_out(request: DryBuildRequest) -> DryBuildOut:
    """Return a dry build's API representation: a completed one, else an open one, else the last."""
    job = answering_job(request)
    if job is None:
        return DryBuildOut(state=NOT_REQUESTED, job=None, built=None, unused={}, error=None, why_waiting="")
    result = result_of_job(job) if job.state == JobState.COMPLETED else None
    error = cause_of(job.error)
    return DryBuildOut(
        state=job.state,
        job=job.pk,
        built=result,
        unused=dict(result.unused) if result is not None else {},
        error=error,
        why_waiting=job.why_waiting if job.state in WAITING else "",
    )
