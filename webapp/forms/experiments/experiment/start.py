"""Builds a new experiment's initial spec, and the data that the form's script needs."""

from collections.abc import Mapping
from typing import Any, Literal

from jobs import access
from jobs.messages.code import CodeSearch
from jobs.models import CodeVersion, Dataset, DatasetVersion, ModelVersion, Project, User
from jobs.queries.code import code, dry_builds
from jobs.queries.data import code_data, datasets
from jobs.queries.data.datasets import READY
from jobs.queries.experiments.experiments import newest_names
from jobs.spec.data.columns import SPLIT_ROLES
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import column_with
from jobs.spec.sections import measures
from jobs.spec.sections.code_model import CODE, CODE_ENTRIES
from jobs.spec.sections.data import Task
from jobs.spec.sections.fit import KERAS_BATCH_SIZE
from jobs.spec.sections.model import model_json
from jobs.spec.sections.version_model import VERSION
from jobs.spec.space.searchable import SEARCHABLE_FIT_FIELDS
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo
from webapp.forms.experiments import described_search
from webapp.forms.experiments.experiment import fine_tuning
from webapp.forms.experiments.experiment.rows import FIT_RANGES
from webapp.forms.experiments.experiment.schema import VARIANTS, Variant, options_of
from webapp.whole_numbers import read_whole

NEWEST_SEARCHES = 50
NEWEST_CODE = 100
Json = dict[str, Any]
type Proposal = Literal["any", "own", "nothing"]


def spec_of_code(
    slug: str,
    number: int | None,
    profile: Profile | None,
    digest: str,
    entry: str,
    search: CodeSearch | None = None,
) -> Json:
    """Return a default spec for a data set and code, whose space the code declares.

    Args:
        slug, number, profile: see `starting_spec`.
        digest: the code version's digest.
        entry: the entry in the version.
        search: the search that the code describes.
    """
    spec = starting_spec(slug, number, profile)
    spec["model"] = {"kind": "code", "digest": digest, "entry": entry}
    # Whether the code compiles its model, and its metrics, are known after a dry build.
    spec["fit"] = {name: spec["fit"][name] for name in ("epochs", "early_stopping")}
    # KerasTuner trains with it too, unless the call of `search` names another.
    spec["fit"]["batch_size"] = KERAS_BATCH_SIZE
    spec["search"]["objective"] = {"metric": "val_loss", "direction": "min"}
    del spec["search"]["space"]
    return spec if search is None else described_search.with_search(spec, search)


def starting_spec(
    slug: str,
    number: int | None,
    profile: Profile | None,
    template: str = "",
    base: ModelVersion | None = None,
) -> Json:
    """Return a default spec for a data set.

    Args:
        slug: the data set's slug; empty for none, which is then chosen in the form.
        number: its version, or None.
        profile: the version's profile, if it is ready.
        template: the template; if unknown, one that suits the data.
        base: a version to train further instead.
    """
    is_regression = profile is not None and profile.task == "regression"
    metric = "val_loss" if is_regression else "val_accuracy"
    data: Json = {"dataset": slug} if slug else {}
    if number:
        data["dataset_version"] = number
    info = VERSION if base is not None else TEMPLATES.get(template) or suitable_template(profile)
    defaults = info.arguments().model_dump(mode="json")
    arguments = {name: defaults[name] for name in info.initial_arguments}
    fit: Json = {
        "epochs": 100,
        "batch_size": _batch_size(profile),
        "optimizer": "adam",
        "learning_rate": 0.001,
        # It watches the objective. Accuracy stays equal for some epochs even while a model improves.
        "early_stopping": {"patience": 10},
    }
    spec = {
        "version": 1,
        "data": {**data, "split": {"validation": 0.2, "test": 0.2, "seed": 0, "stratify": not is_regression}},
        "model": model_json(info.name, arguments) if base is None else {},
        "fit": {name: value for name, value in fit.items() if info.uses(name)},
        "search": {
            "algorithm": "random",
            "objective": {"metric": metric, "direction": measures.direction(metric)},
            "max_trials": 12,
            "executions_per_trial": 2,
            "space": [
                *({"name": name, **info.ranges[name]} for name in info.searched),
                *({"name": name, **bounds} for name, bounds in ranges_of_fit(info).items()),
            ],
        },
        "after": {
            "retrain": {"top": 3, "epochs_factor": 1.2, "include_validation": True},
            "ensemble": {"method": "weighted"},
        },
        "resources": {"pool": "default", "slots": 1, "priority": 50},
    }
    return spec if base is None else fine_tuning.start_spec(spec, profile, base)


def _batch_size(profile: Profile | None) -> int:
    """Return a usual batch size that is at most half of the rows."""
    if profile is None or profile.rows >= 1000:
        return 128
    return min(32, 1 << max((profile.rows // 2).bit_length() - 1, 0))


def ranges_of_fit(info: TemplateInfo) -> Mapping[str, Mapping[str, Any]]:
    """Return the fit ranges that a new experiment with a template searches."""
    usual = {name: FIT_RANGES[name] for name in ("learning_rate",) if info.uses(name)}
    return info.fit_ranges or usual


def suitable_template(profile: Profile | None) -> TemplateInfo:
    """Return the first template that suits the data."""
    templates = list(TEMPLATES.values())
    if profile is None:
        return templates[0]
    return next(info for info in templates if info.takes(profile) and info.suits(profile))


def context_for_browser(user: User, project: Project) -> Json:
    """Return the data sets, kinds and metrics for the form's script."""
    loaded = code_data.newest_versions(project)
    return {
        "project": project.slug,
        "names": newest_names(project),
        "datasets": [
            _describe_dataset(dataset)
            for dataset in datasets.datasets_with_versions(user, project, profiles=True).order_by("slug")
        ],
        "variants": {pointer: _variant(variant) for pointer, variant in VARIANTS.items()},
        "fitFields": sorted(SEARCHABLE_FIT_FIELDS),
        "fitRanges": FIT_RANGES,
        "templates": [
            {
                "name": info.name,
                "label": info.label,
                "isHypermodel": info.is_hypermodel,
                "isListed": info.is_listed,
                "dataKinds": info.data_kinds,
                "smallestSide": info.smallest_side,
                "refusedTasks": list(info.refused_tasks),
                "ranges": info.ranges,
                "searched": {
                    **{name: info.ranges[name] for name in info.searched},
                    **ranges_of_fit(info),
                },
                "unused": info.unused,
                "refused": info.refused,
            }
            for info in (*TEMPLATES.values(), VERSION)
        ],
        "baseVersions": fine_tuning.offered_versions(user, project),
        "code": {
            "mayRun": access.can(user, project, access.Action.RUN_CODE),
            "versions": [
                _describe_code(version, loaded) for version in code.newest_versions(project, NEWEST_CODE)
            ],
            "unused": CODE.unused,
        },
        "searches": _describe_searches(project),
        "tasks": {task: _measures_of_task(task) for task in measures.DEFAULT_METRICS},
    }


def _describe_code(version: CodeVersion, loaded: Mapping[str, DatasetVersion]) -> Json:
    """Return a code version with its entries that build models, and the data set that it has loaded."""
    dataset_version = loaded.get(version.digest)
    entries = [entry for entry in version.findings.entries if entry.kind in CODE_ENTRIES]
    # The first one is chosen; one with a note cannot be used.
    entries.sort(key=lambda entry: bool(entry.note))
    names = [entry.name for entry in entries]
    return {
        "digest": version.digest,
        "label": str(version),
        "data": {"dataset": dataset_version.dataset.slug if dataset_version is not None else None}
        if code_data.entry_names(version)
        else None,
        "entries": [
            {
                # A name that several files have needs the path.
                "entry": entry.name if names.count(entry.name) == 1 else f"{entry.path}:{entry.name}",
                "arguments": [
                    {"name": argument.name, "default": argument.default}
                    for argument in dry_builds.fields_of_entry(entry)
                ],
            }
            for entry in entries
        ],
    }


def _describe_searches(project: Project) -> list[Json]:
    """Return a project's newest searches, from which a new search may be warm-started."""
    rows = project.jobs.with_trials().values_list(
        "pk", "title", "revision__spec_json__search__objectives", "revision__spec_json__search__objective"
    )
    return [
        {"id": pk, "label": f"job {pk}: {title}", "objectives": several or [one]}
        for pk, title, several, one in rows.order_by("-pk")[:NEWEST_SEARCHES]
    ]


def _variant(variant: Variant) -> Json:
    kinds = {
        name: {
            argument: None if about.is_required() else about.default
            for argument, about in kind.model_fields.items()
        }
        for name, kind in variant.kinds.items()
    }
    options = {name: options_of(kind) for name, kind in variant.kinds.items()}
    return {"arguments": variant.arguments, "kinds": kinds, "options": options}


def _measures_of_task(task: Task) -> Json:
    return {
        "losses": measures.losses_for(task),
        "metrics": measures.metrics_for(task),
        "defaults": list(measures.DEFAULT_METRICS[task]),
        "objective": "val_loss" if task == "regression" else "val_accuracy",
        "directions": {name: measures.direction(name) for name in ("loss", *measures.metrics_for(task))},
    }


def _describe_dataset(dataset: Dataset) -> Json:
    return {
        "slug": dataset.slug,
        "name": dataset.name,
        "versions": [
            {"number": version.number, "state": version.state, **_profile_facts(version.profile)}
            for version in dataset.versions.all()
        ],
    }


def _profile_facts(profile: Profile | None) -> Json:
    if profile is None:
        return {}
    return {
        "rows": profile.rows,
        "kinds": sorted(profile.kinds),
        "task": profile.task,
        "columns": [column.name for column in profile.columns if not column.shape],
        "splitRoles": {role: column_with(profile, role) for role in SPLIT_ROLES},
        "inputShape": list(profile.input_shape),
        "outputs": profile.outputs,
        "classCounts": list(profile.class_counts),
    }


def initial_data(
    user: User, project: Project, slug: str, number: str, *, proposes: Proposal = "any"
) -> tuple[str, int | None, Profile | None]:
    """Return a new form's data set: the requested one, else a proposed one. The slug is empty for none.

    Args:
        user: the reader.
        project: whose data are proposed.
        slug: the requested data set; empty for none.
        number: its requested version.
        proposes: `own`: the project's own newest one that is ready, or none; `any`: that, else digits, or the
            first one that is ready.
    """
    rows = datasets.datasets_with_versions(user, project).order_by("slug")
    by_slug = {dataset.slug: dataset for dataset in rows}
    own = datasets.newest_own(by_slug.values())
    if slug in by_slug:
        selected = slug
    elif proposes == "nothing":
        selected = ""
    elif own is not None:
        selected = own.dataset.slug
    elif proposes == "own":
        selected = ""
    else:
        ready = [name for name, row in by_slug.items() if any(v.state == READY for v in row.versions.all())]
        selected = next((name for name in ("digits", *ready) if name in by_slug), "digits")
    version = datasets.find_version(project, selected, read_whole(number))
    if version is None:
        return selected, None, None
    return selected, version.number, version.profile
