"""Makes one row for each hyperparameter that code declares, and explains rows that cannot be searched."""

from typing import Any

from jobs.spec.formats.reading import FormatError
from workers.engine.errors import CodeBuildFailure


class UnusableSpace(CodeBuildFailure):
    """The declared hyperparameters cannot be searched."""

    code = "bad_space"


def merged_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a space's rows with each name once.

    KerasTuner has a row for each list of conditions under which code declares a hyperparameter.

    Raises:
        UnusableSpace: two rows of a name cannot be one.
    """
    by_name: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = row["config"]["name"]
        by_name[name] = _joined(by_name[name], row) if name in by_name else row
    return list(by_name.values())


def active_rows(rows: list[dict[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """Return rows whose conditions name only values that their parents may have.

    `conditional_scope("layers", list(range(i + 1, 5)))` names 1 too if there are at least two layers.

    Args:
        rows: of a space, each name once.
        notes: gets a sentence for each row that is left out, since no trial can have it.
    """
    parents = {row["config"]["name"]: row for row in rows}
    active = []
    for row in rows:
        conditions = [_possible(condition, parents) for condition in row["config"]["conditions"]]
        if all(condition["config"]["values"] for condition in conditions):
            active.append({**row, "config": {**row["config"], "conditions": conditions}})
        else:
            name, parent = row["config"]["name"], row["config"]["conditions"][-1]["config"]
            notes.append(
                f"{name!r} is never used: {parent['name']!r} never has a value of {parent['values']!r}"
            )
    return active


def _possible(condition: dict[str, Any], parents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a condition without the values that its parent never has."""
    config = condition["config"]
    parent = parents.get(config["name"])
    kept = [value for value in config["values"] if parent is None or may_have(parent, value)]
    return {**condition, "config": {**config, "values": kept}}


def may_have(row: dict[str, Any], value: Any) -> bool:
    """Return whether a hyperparameter may have a value; true if that is not known."""
    config, kind = row["config"], row["class_name"]
    if kind == "Choice":
        return value in config["values"]
    if kind == "Boolean":
        return value in (True, False)
    if kind == "Fixed":
        return bool(value == config["value"])
    if kind != "Int" or config["sampling"] not in (None, "linear") or not isinstance(value, int):
        return True
    low, step = config["min_value"], config["step"] or 1
    return bool(low <= value <= config["max_value"] and (value - low) % step == 0)


def why_unusable(error: FormatError, rows: list[dict[str, Any]]) -> str:
    """Return why hyperparameters cannot be searched, with the name of each."""
    reasons: dict[str, None] = {}
    for problem in error.problems:
        place = problem.pointer.split("/")[2:3]
        name = rows[int(place[0])]["config"]["name"] if place and place[0].isdecimal() else ""
        is_named = not name or repr(name) in problem.message
        reasons[problem.message if is_named else f"{name!r}: {problem.message}"] = None
    return f"the hyperparameters of the code cannot be searched: {'; '.join(reasons)}"


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    name, conditions = first["config"]["name"], [row["config"]["conditions"] for row in (first, second)]
    values = [{**row["config"], "conditions": []} for row in (first, second)]
    if first["class_name"] != second["class_name"] or values[0] != values[1]:
        raise UnusableSpace(
            f"the code declares the hyperparameter {name!r} twice, with different values under different "
            "conditions; give each its own name"
        )
    pairs = list(zip(*conditions, strict=False))
    different = [number for number, (one, other) in enumerate(pairs) if one != other]
    if len(conditions[0]) != len(conditions[1]):
        # Under the fewer conditions, it is active under the further ones too.
        fewer = min(conditions, key=len)
        if not different:
            return {**first, "config": {**first["config"], "conditions": fewer}}
    elif len(different) == 1:
        one, other = (entry["config"] for entry in pairs[different[0]])
        if one["name"] == other["name"]:
            both = list(conditions[0])
            union = [*one["values"], *(value for value in other["values"] if value not in one["values"])]
            both[different[0]] = {**both[different[0]], "config": {**one, "values": union}}
            return {**first, "config": {**first["config"], "conditions": both}}
    raise UnusableSpace(
        f"the code declares the hyperparameter {name!r} twice under conditions that no single row can have; "
        "give each its own name"
    )
