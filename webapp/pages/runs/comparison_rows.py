"""Makes the rows of the page that compares jobs, experiments and versions."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from jobs.answers.runs.job_comparison import MeasuredPart, MetricRowOut, SettingRowOut, SubjectOut
from webapp.templatetags import words
from webapp.templatetags.model_reports import metric_name
from webapp.templatetags.problem_labels import label_of

PARTS: dict[MeasuredPart, str] = {
    "score": "Best score of the objective, on validation rows",
    "test": "Metrics on test rows",
    "validation": "Metrics on validation rows",
}
SECTIONS = {
    "data": "Data",
    "model": "Model",
    "fit": "Training",
    "search": "Search",
    "mesh": "Mesh",
    "precision": "Precision",
    "after": "Afterwards",
    "resources": "Resources",
    "values": "Values of the trained model",
}
"""The sections of a spec by their names in the form."""
LONGEST = 160
"""The most characters of a setting's value."""


class Cell(NamedTuple):
    """A value of one subject. `interval` is that of a metric, `title` explains the cell."""

    text: str
    interval: str = ""
    is_best: bool = False
    differs: bool = False
    title: str = ""


class Row(NamedTuple):
    """A row of the table; `hint` explains its label."""

    label: str
    cells: list[Cell]
    hint: str = ""
    note: str = ""


class Section(NamedTuple):
    """Rows under a common title."""

    title: str
    rows: list[Row]


def fact_rows(subjects: Sequence[SubjectOut]) -> list[Row]:
    """Return the rows about the subjects themselves, without those that are empty."""
    rows = [
        Row("Project", [Cell(subject["project"] or "–") for subject in subjects]),
        Row("Objective", [Cell(_objective(subject)) for subject in subjects]),
        Row("Measured model", [_measured(subject) for subject in subjects]),
        Row(
            "Rows",
            [Cell(_test_rows(subject)) for subject in subjects],
            "The same letter: the same data, split and target, and so the same validation and test rows.",
        ),
        Row("Size", [Cell(words.byte_size(subject["bytes"])) for subject in subjects]),
        Row("Parameters", [Cell(_count(subject["parameters"])) for subject in subjects]),
        Row(
            "Latency",
            [Cell(_latency(subject), title=_where(subject)) for subject in subjects],
            "95th percentile of a call with one row",
        ),
        Row("Duration", [Cell(words.duration(subject["seconds"])) for subject in subjects]),
    ]
    return [row for row in rows if any(cell.text != words.NONE for cell in row.cells)]


def _objective(subject: SubjectOut) -> str:
    if subject["objective"] is None:
        return words.NONE
    return f"{subject['objective']}, {'highest' if subject['direction'] == 'max' else 'lowest'}"


def _measured(subject: SubjectOut) -> Cell:
    return Cell(subject["measured"]) if subject["measured"] else Cell(words.NONE, title=subject["note"])


def _test_rows(subject: SubjectOut) -> str:
    count = _count(subject["test_rows"])
    letter = subject["rows_group"]
    return f"{letter} · {count}" if letter and subject["test_rows"] is not None else letter or count


def _count(value: int | None) -> str:
    return words.NONE if value is None else f"{value:,}"


def _latency(subject: SubjectOut) -> str:
    value = subject["latency_ms"]
    return words.NONE if value is None else f"{words.number(value, 3)} ms"


def _where(subject: SubjectOut) -> str:
    return f"measured {subject['hardware']}" if subject["hardware"] else ""


def metric_rows(rows: Sequence[MetricRowOut]) -> list[Section]:
    """Return the rows of metrics, by part of the data."""
    return [
        Section(title, [_metric_row(row) for row in rows if row["part"] == part])
        for part, title in PARTS.items()
        if any(row["part"] == part for row in rows)
    ]


def _metric_row(row: MetricRowOut) -> Row:
    cells = [
        Cell(words.NONE)
        if value is None
        else Cell(
            words.number(value["value"]),
            _interval(value["low"], value["high"]),
            at in row["best"],
            title="best of these" if at in row["best"] else "",
        )
        for at, value in enumerate(row["values"])
    ]
    directions = {
        "max": "higher is better",
        "min": "lower is better",
        None: "optimized in opposite directions",
    }
    note = "Intervals overlap: the lead may be chance." if row["close"] else ""
    name = metric_name(row["name"]) if row["part"] == "test" else row["name"]
    return Row(name, cells, directions[row["direction"]], note)


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{words.number(low, 3)} … {words.number(high, 3)}"


def setting_sections(rows: Sequence[SettingRowOut]) -> list[Section]:
    """Return the rows of settings, by section of the form."""
    by_section: dict[str, list[Row]] = {name: [] for name in SECTIONS}
    for row in rows:
        by_section.setdefault(row["pointer"].split("/")[1], []).append(_setting_row(row))
    return [Section(SECTIONS.get(name, name), found) for name, found in by_section.items() if found]


def _setting_row(row: SettingRowOut) -> Row:
    first = row["values"][0]
    cells = [_setting_cell(value, differs=value != first) for value in row["values"]]
    return Row(_setting_label(row["pointer"]), cells, row["pointer"].strip("/").replace("/", "."))


def _setting_label(pointer: str) -> str:
    for prefix in ("/values/", "/search/space/"):
        if pointer.startswith(prefix):
            return pointer.removeprefix(prefix).replace("~1", "/").replace("~0", "~")
    label = label_of(f"/spec{pointer}")
    section = f"{pointer.split('/')[1].capitalize()}, "
    # These words are those of the title above the row.
    rest = label.removeprefix(section).removeprefix("Search hyperparameters, ")
    return rest[:1].upper() + rest[1:]


def _setting_cell(value: Any, *, differs: bool) -> Cell:
    text = _in_words(value)
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    return Cell(shown, differs=differs, title=text if shown != text else "")


def _in_words(value: Any) -> str:
    if value is None or value in ([], {}):
        return words.NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(str(item) for item in value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
