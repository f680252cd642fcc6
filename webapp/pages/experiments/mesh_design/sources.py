"""Finds the spec for which the mesh designer was opened: that of an experiment, job, version or template."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobs import access
from jobs.access import Action
from jobs.errors import BadInput, NotFound
from jobs.models import Experiment, Job, Project, User
from jobs.queries.code import code as code_queries
from jobs.spec.problems import Problem
from jobs.spec.sections.code_model import CODE_ENTRIES
from jobs.spec.templates import TEMPLATES
from webapp.forms.experiments.experiment import conflict, start
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.pages.shortcuts import url
from webapp.whole_numbers import number_or_text, read_whole

Json = dict[str, Any]
MAX_ARGUMENTS = 2000
ARGUMENT = "arg-"
"""The start of the names of fields for the template's arguments."""


@dataclass(frozen=True)
class Source:
    """The spec for which a mesh is designed.

    Attributes:
        query: the parameters of an address that name it.
        label: its name for people.
        project: has it.
        body: the spec as JSON; that of a draft may be invalid.
        back: the address of its page.
        experiment: the experiment into which the design can be written; None: a new one is made.
        may_write: whether the user may write in the project.
        job: the job whose spec it is, if any; it may have measured its mesh.
    """

    query: dict[str, str]
    label: str
    project: Project
    body: Any
    back: str
    experiment: Experiment | None
    may_write: bool
    job: Job | None = None

    @property
    def saved_mesh(self) -> Any:
        """Return the mesh in the spec as JSON; None if it has none."""
        return self.body.get("mesh") if isinstance(self.body, dict) else None


def find_source(user: User, values: Mapping[str, str]) -> Source | None:
    """Return the spec that an address names; None if it names none.

    Raises:
        NotFound: there is none that the user may see.
        BadInput: a parameter is wrong.
    """
    named = next((name for name in _FINDERS if values.get(name)), None)
    return None if named is None else _FINDERS[named](user, values)


def _of_experiment(user: User, values: Mapping[str, str]) -> Source:
    experiment = access.get_experiment(user, _number(values, "experiment"))
    body = conflict.saved_version(experiment)["spec"]
    query = {"experiment": str(experiment.pk)}
    return _source(user, experiment.project, query, experiment.name, body, experiment=experiment)


def _of_job(user: User, values: Mapping[str, str]) -> Source:
    job = access.get_job(user, _number(values, "job"))
    if job.revision is None or job.project is None:
        raise NotFound(f"Job {job.pk} has no experiment, so it has no mesh.")
    return _source(
        user,
        job.project,
        {"job": str(job.pk)},
        f"Job {job.pk}",
        job.revision.spec_json,
        experiment=job.experiment,
        back=url("job", job.pk),
        job=job,
    )


def _of_version(user: User, values: Mapping[str, str]) -> Source:
    name, _, text = values["version"].rpartition("/")
    number = read_whole(text)
    rows = access.visible_versions(user).filter(model__name=name)
    rows = rows.select_related("model__project", "source_job__revision")
    version = rows.filter(number=number).first() if number is not None else None
    if version is None:
        raise NotFound(
            f"There is no version {values['version'][:100]!r}; give a name and a number: digits/2."
        )
    revision = version.source_job.revision if version.source_job is not None else None
    if revision is None:
        message = (
            f"{version} was not trained here, so its experiment is not known: open an experiment instead"
        )
        raise BadInput(message, [Problem("/version", message)])
    return _source(
        user,
        version.model.project,
        {"version": f"{name}/{version.number}"},
        str(version),
        revision.spec_json,
        back=url("version", name, version.number),
    )


def _of_code(user: User, values: Mapping[str, str]) -> Source:
    named = values.get("project")
    home = access.get_project(user, named) if named else None
    version = access.get_code(user, values["code"], home)
    entries = [entry.name for entry in version.findings.entries if entry.kind in CODE_ENTRIES]
    entry = values.get("entry") or next(iter(entries), "")
    if not entry:
        message = f"{version} has no function build_model and no HyperModel, so it has no model to divide"
        raise BadInput(message, [Problem("/entry", message)])
    slug, number, profile = start.initial_data(
        user, version.project, values.get("dataset", ""), values.get("dataset_version", ""), proposes="own"
    )
    search = code_queries.described_search(version.project, version.digest, entry)
    body = start.spec_of_code(slug, number, profile, version.digest, entry, search)
    query = {"code": version.digest, "project": version.project.slug, "entry": entry, "dataset": slug}
    back = f"{url('code_version', version.digest, project=version.project.slug)}"
    return _source(user, version.project, query, f"{version.name} {entry}", body, back=back)


def _of_template(user: User, values: Mapping[str, str]) -> Source:
    name = values["template"]
    if name not in TEMPLATES:
        message = f"there is no template {name[:40]!r}; known are {', '.join(TEMPLATES)}"
        raise BadInput(message, [Problem("/template", message)])
    slug = values.get("project", "")
    mine = access.projects_of(user).order_by("name")
    project = access.get_project(user, slug) if slug else mine.first()
    if project is None:
        raise NotFound("You are in no project, and a model needs a project's data.")
    dataset, number, profile = start.initial_data(
        user, project, values.get("dataset", ""), values.get("dataset_version", "")
    )
    body = start.starting_spec(dataset, number, profile, name)
    arguments = _arguments(values)
    body["model"] = {**body["model"], "args": {**body["model"].get("args", {}), **arguments}}
    query = {"template": name, "project": project.slug, "dataset": dataset}
    if arguments:
        query["args"] = json.dumps(arguments, separators=(",", ":"))
    label = f"{TEMPLATES[name].label} on {dataset}"
    back = url("experiments", project.slug)
    return _source(user, project, query, label, body, back=back)


def _arguments(values: Mapping[str, str]) -> Json:
    """Return the template's arguments: those in `args`, replaced by those of fields such as `arg-units`."""
    text = values.get("args", "") or "{}"
    try:
        arguments = read_json(text[:MAX_ARGUMENTS].encode())
    except Malformed as error:
        raise BadInput(error.message, [Problem("/args", error.message)]) from error
    if not isinstance(arguments, dict):
        message = f'give an object such as {{"units": 64}}, not {text[:40]}'
        raise BadInput(message, [Problem("/args", message)])
    fields = {name.removeprefix(ARGUMENT): values[name] for name in values if name.startswith(ARGUMENT)}
    return {**arguments, **{name: number_or_text(text) for name, text in fields.items()}}


def _source(
    user: User,
    project: Project,
    query: dict[str, str],
    label: str,
    body: Any,
    *,
    experiment: Experiment | None = None,
    back: str = "",
    job: Job | None = None,
) -> Source:
    may_write = access.can(user, project, Action.WRITE)
    if experiment is not None and not back:
        back = url("experiment", project.slug, experiment.pk)
    return Source(query, label, project, body, back, experiment, may_write, job)


def _number(values: Mapping[str, str], field: str) -> int:
    number = read_whole(values[field])
    if number is None:
        message = f"give the number of the {field}, not {values[field][:40]!r}"
        raise BadInput(message, [Problem(f"/{field}", message)])
    return number


_FINDERS: dict[str, Callable[[User, Mapping[str, str]], Source]] = {
    "experiment": _of_experiment,
    "job": _of_job,
    "version": _of_version,
    "code": _of_code,
    "template": _of_template,
}
