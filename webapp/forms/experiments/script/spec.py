"""Converts between the form of a script's experiment and its spec."""

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.spec.labels import labels_text
from webapp.forms.experiments.script.devices import axes_text, devices_of, mesh_from

NO_DATA = ""
Json = dict[str, Any]


def spec_from(base: Json, values: Mapping[str, Any], args: Json, space: list[Json]) -> Json:
    """Return the spec that the form describes, and keep the fields in `base` that it does not show.

    Args:
        base: the spec that is revised; empty for a new one.
        values: the cleaned fields.
        args: the script's arguments.
        space: the search space; empty without a search.
    """
    model: Json = {
        "kind": "script",
        "digest": values["code"],
        "entry": values["entry"].strip(),
        "args": args,
    }
    if values["variables"]:
        model["env"] = values["variables"]
    after: Json = {}
    if values["register"].strip():
        after["register"] = {"model": values["register"].strip()}
    spec: Json = {
        "version": 1,
        "model": model,
        "fit": {"epochs": values["steps"], "seed": values["seed"]},
        "after": after,
        "resources": {
            **spec_part(base, "resources"),
            "pool": values["pool"].strip(),
            "labels": values["labels"] or None,
            "slots": values["slots"],
            "gpu": _gpu_spec(values),
            "max_minutes": _minutes_of_runs(base, values, is_search=bool(space)),
        },
    }
    if (data := _data_spec(spec_part(base, "data"), values["dataset"])) is not None:
        spec["data"] = data
    if (mesh := mesh_from(spec_part(base, "mesh"), values["devices"], values["axes"])) is not None:
        spec["mesh"] = mesh
    if space:
        spec["search"] = _search_spec(spec_part(base, "search"), values, space)
    return spec


def _minutes_of_runs(base: Json, values: Mapping[str, Any], *, is_search: bool) -> Any:
    """Return the time limit of a run. A search has its own; one for the steps after it stays as it was."""
    if not is_search:
        return values["minutes"]
    return spec_part(base, "resources").get("max_minutes") if spec_part(base, "search") else None


def _gpu_spec(values: Mapping[str, Any]) -> Json | None:
    """Return the GPUs that the form asks for; None if all fields are empty."""
    fields = {
        "name": values["gpu_model"].strip() or None,
        "memory_gb": values["gpu_memory"],
        "count": values["gpus"],
    }
    return {name: value for name, value in fields.items() if value is not None} or None


def spec_part(spec: Json, name: str) -> Json:
    """Return a spec part; an empty one where a draft has something else in its place."""
    value = spec.get(name)
    return value if isinstance(value, dict) else {}


def _data_spec(base: Json, chosen: str) -> Json | None:
    if chosen == NO_DATA:
        return None
    slug, _, number = chosen.rpartition(":")
    # Another data set has other columns.
    unchanged = dict(base) if base.get("dataset") == slug else {}
    unchanged.pop("dataset_version", None)
    return {**unchanged, "dataset": slug, **({"dataset_version": int(number)} if number else {})}


def _search_spec(base: Json, values: Mapping[str, Any], space: list[Json]) -> Json:
    rows = base.get("space")
    earlier_rows = (
        {str(row.get("name")): row for row in rows if isinstance(row, dict)} if isinstance(rows, list) else {}
    )
    # A condition names an earlier row.
    places = {name: place for place, name in enumerate(earlier_rows)}
    space = sorted(space, key=lambda row: places.get(row["name"], len(places)))
    objective = {"metric": values["metric"].strip(), "direction": values["direction"]}
    # Several objectives, of which the form shows the first.
    shown_fields = ("pruner", "parallel_trials", "objectives")
    hidden = {name: value for name, value in base.items() if name not in shown_fields}
    search: Json = {
        **hidden,
        "algorithm": values["algorithm"] or "random",
        "objective": objective,
        "max_trials": values["max_trials"] or 12,
        "max_minutes": values["minutes"],
        "executions_per_trial": values["executions"] or 1,
        # A row that was not changed keeps its conditions.
        "space": [_merge_row(earlier_rows.get(row["name"]), row) for row in space],
    }
    if search["algorithm"] != base.get("algorithm"):
        search.pop("options", None)
    if values["parallel"]:
        search["parallel_trials"] = values["parallel"]
    if values["pruner"]:
        before = spec_part(base, "pruner")
        search["pruner"] = before if before.get("kind") == values["pruner"] else {"kind": values["pruner"]}
    return search


def _merge_row(before: Json | None, row: Json) -> Json:

    if before is None or any(before.get(name) != value for name, value in row.items()):
        return row
    return before


def initial_values(spec: Json) -> Iterator[tuple[str, Any]]:
    """Yield the field values that show a spec."""
    model, data, search = spec_part(spec, "model"), spec_part(spec, "data"), spec_part(spec, "search")
    objective = spec_part(search, "objective")
    yield "entry", model.get("entry", "")
    yield "variables", "\n".join(f"{name}={value}" for name, value in spec_part(model, "env").items())
    slug, number = data.get("dataset"), data.get("dataset_version") or ""
    yield "code", model.get("digest", "")
    yield "dataset", f"{slug}:{number}" if slug else NO_DATA
    yield "steps", spec_part(spec, "fit").get("epochs", 100)
    yield "seed", spec_part(spec, "fit").get("seed", 0)
    yield "metric", objective.get("metric", "")
    yield "direction", objective.get("direction", "")
    yield "algorithm", search.get("algorithm", "random")
    yield "max_trials", search.get("max_trials", 12)
    yield "executions", search.get("executions_per_trial", 1)
    yield "parallel", search.get("parallel_trials", "")
    yield "pruner", spec_part(search, "pruner").get("kind", "")
    yield "register", spec_part(spec_part(spec, "after"), "register").get("model", "")
    yield "pool", spec_part(spec, "resources").get("pool", "default")
    labels = spec_part(spec_part(spec, "resources"), "labels")
    yield "labels", labels_text({str(key): str(value) for key, value in labels.items()})
    yield "slots", spec_part(spec, "resources").get("slots", 1)
    gpu = spec_part(spec, "resources").get("gpu")
    # An empty one asks for any GPU.
    fields = {"count": 1} if gpu == {} else spec_part({"gpu": gpu}, "gpu")
    yield "gpu_model", fields.get("name", "")
    yield "gpu_memory", fields.get("memory_gb")
    yield "gpus", fields.get("count")
    yield "devices", devices_of(spec_part(spec, "mesh"))
    yield "axes", axes_text(spec_part(spec, "mesh"))
    yield "minutes", (search or spec_part(spec, "resources")).get("max_minutes")


def is_script(spec: Any) -> bool:
    """Return whether a spec, or its draft, runs a script, so that this form shows it."""
    model = spec.get("model") if isinstance(spec, dict) else None
    return isinstance(model, dict) and model.get("kind") == "script"
