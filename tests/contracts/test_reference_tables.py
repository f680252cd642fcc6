"""The reference tables in docs/experiment-spec.md match the registries."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.base import Frozen
from jobs.spec.exports import EXPORTS
from jobs.spec.space.searchable import SEARCHABLE_FIT_FIELDS
from jobs.spec.templates import TEMPLATES

DOCUMENT = Path(__file__).parents[2] / "docs" / "experiment-spec.md"
UPDATE = "UPDATE_DOCS=1 pytest tests/contracts/test_reference_tables.py, then commit docs/experiment-spec.md"


def fields_of(kind: type[Frozen] | None) -> str:
    """List a class's fields with their defaults, as the table shows them."""
    fields = kind.model_fields if kind is not None else {}
    defaults = {name: field.default for name, field in fields.items()}
    return ", ".join(f"`{name}` {str(value).lower()}" for name, value in defaults.items())


def templates() -> Iterator[str]:
    for name, info in TEMPLATES.items():
        kinds = ", ".join(f"{kind}s" for kind in info.data_kinds)
        yield f"| `{name}` | {info.help} | {kinds} | {fields_of(info.arguments)} |"


def algorithms() -> Iterator[str]:
    word = {True: "yes", False: "no"}
    for name, info in ALGORITHMS.items():
        traits = [word[t] for t in (info.several_objectives, info.learns_from_earlier, info.has_rungs)]
        yield f"| `{name}` | {info.help} | {' | '.join(traits)} | {fields_of(info.options)} |"


def formats() -> Iterator[str]:
    for name, entry in EXPORTS.items():
        traits = [entry.help, ", ".join(entry.runs_in), "yes" if entry.quantizes else "no"]
        yield f"| `{name}` | {' | '.join(traits)} | {fields_of(entry.options)} |"


def hyperparameters() -> Iterator[str]:
    parts = [name.rpartition("/")[0] for name in SEARCHABLE_FIT_FIELDS]
    for part in sorted(set(parts)):
        names = sorted(name for name in SEARCHABLE_FIT_FIELDS if name.rpartition("/")[0] == part)
        title = f"`{part}`" if part else "its own fields"
        yield f"| {title} | {', '.join(f'`{name}`' for name in names)} |"


ROWS: dict[str, Callable[[], Iterator[str]]] = {
    "template": templates,
    "algorithm": algorithms,
    "format": formats,
    "part of fit": hyperparameters,
}


@pytest.mark.parametrize("column", ROWS)
def test_the_documented_table_matches_the_registry(column: str) -> None:
    text = DOCUMENT.read_text()
    expected = "".join(f"{row}\n" for row in ROWS[column]())
    table = re.search(rf"(^\| `{column}` \|.*\n\|[-|]+\n)((?:\|.*\n)*)", text, re.MULTILINE)
    assert table is not None
    if os.environ.get("UPDATE_DOCS"):
        text = text[: table.start(2)] + expected + text[table.end(2) :]
        DOCUMENT.write_text(text)
        return
    assert table[2] == expected, f"the registry changed: {UPDATE}"
