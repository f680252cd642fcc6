"""Names the columns of a table, also those without a name, and those with the name of another one."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from jobs.spec.data.text_headers import is_number

INDEX = "index"
"""Name of a column with the labels of the rows, which pandas and R write without one."""
SAVED_INDEX = re.compile(r"Unnamed: 0(\.\d+)*")
"""Names that pandas gives to such columns of a file, which the next `to_csv` writes."""
UNSEEN = " \t\u00a0\u00ad\u200b\u200e\u200f\u2060\ufeff"
"""Invisible characters around a name, such as a second byte order mark."""
MOST_NAMED = 5


class Header(NamedTuple):
    """The names of a table's columns.

    Attributes:
        names: in the order of the file.
        spare: how many empty fields follow in each row, behind a delimiter at its end.
        labels: the columns with the labels of the rows.
        renamed: the new name of each column whose name in the file is not used.
        findings: sentences about names that the file does not have.
    """

    names: list[str]
    spare: int = 0
    labels: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def fields(self) -> list[str]:
        """The names of all fields in a row."""
        return [*self.names, *(f"\0{number}" for number in range(self.spare))]

    def new_names(self, names: Iterable[str]) -> frozenset[str]:
        """Return names of columns as the table has them: earlier releases kept all names of the file."""
        renamed = dict(self.renamed)
        return frozenset(renamed.get(name, name) for name in names)


def read_header(rows: Sequence[Sequence[str]], *, delimiter: str, has_names: bool) -> Header:
    """Return a table's header.

    Args:
        rows: the first rows.
        delimiter: between their fields.
        has_names: whether the first of them has names.
    """
    first, body = rows[0], rows[1:]
    if not has_names:
        names = [f"column_{number}" for number in range(1, len(first) + 1)]
        return Header(names, _spare_fields(rows, len(names)))
    # Some programs end every line with a delimiter, the header alone excepted.
    names = list(first[:-1] if len(first) > 1 and first[-1] == "" and all(_ends_empty(body)) else first)
    spare = _spare_fields(body, len(names))
    if not spare and _has_labels(body, len(names), delimiter):
        named = name_columns(["", *names])
        about = f"The rows have a field more than the header; the first one, which labels them, is {INDEX!r}."
        return named._replace(findings=(about, *named.findings[1:]))
    return name_columns(names)._replace(spare=spare)


def _ends_empty(rows: Sequence[Sequence[str]]) -> list[bool]:
    return [row[-1] == "" for row in rows]


def _spare_fields(body: Sequence[Sequence[str]], names: int) -> int:
    """Return 1 if every row has a delimiter at its end, and so an empty field more than there are names."""
    return int(bool(body) and all(len(row) == names + 1 and row[-1] == "" for row in body))


def _has_labels(body: Sequence[Sequence[str]], names: int, delimiter: str) -> bool:
    """Return whether each row begins with a label that no other row has, for which the header has no name.

    A number with a comma that divides no fields makes rows longer too, so labels between commas are words, or
    count the rows.
    """
    labels = [row[0] for row in body if len(row) == names + 1]
    if not labels or len(labels) < len(body) or len({*labels}) < len(labels) or "" in labels:
        return False
    counted = [[str(number + first) for number in range(len(labels))] for first in (0, 1)]
    return delimiter in " \t" or labels in counted or not any(map(is_number, labels))


def name_columns(names: Sequence[str], labels: Collection[int] = ()) -> Header:
    """Return names that are not empty and differ.

    Args:
        names: as the file has them, without blanks around them.
        labels: places of columns that are labels of the rows if they have no name, beside the first ones.
    """
    written, names = names, [name.strip(UNSEEN) for name in names]
    taken = {name for name in names if name}
    first_named = next((place for place, name in enumerate(names) if name), 0)
    new, index, unnamed = list[str](), list[str](), list[str]()
    renamed: list[tuple[str, str]] = []
    repeated: dict[str, list[str]] = {}
    seen: set[str] = set()
    for place, name in enumerate(names):
        is_unnamed = not name and (place < first_named or place in labels)
        is_index = is_unnamed or bool(SAVED_INDEX.fullmatch(name))
        if is_index or not name:
            new.append(_free(INDEX if is_index else f"column_{place + 1}", taken))
            if name:
                renamed.append((name, new[-1]))
            (index if is_index else unnamed).append(new[-1])
        elif name in seen:
            new.append(_free(name, taken))
            repeated.setdefault(name, []).append(new[-1])
        else:
            new.append(name)
            if written[place] != name:
                renamed.append((written[place], name))
        taken.add(new[-1])
        seen.add(name)
    findings = (
        *_index_findings(index, dict(renamed)),
        *_unnamed_findings(unnamed),
        *_repeated_findings(repeated),
    )
    return Header(new, 0, tuple(index), tuple(renamed), findings)


def _free(name: str, taken: set[str]) -> str:
    """Return a name, with a number if another column has it."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _index_findings(index: Sequence[str], renamed: dict[str, str]) -> list[str]:
    old = {new: name for name, new in renamed.items()}
    return [
        f"Column {old[name]!r} is an index that was saved without a name; it is called {name!r}."
        if name in old
        else f"A column with the labels of the rows has no name in the file; it is called {name!r}."
        for name in index
    ]


def _unnamed_findings(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [
        f"The header has no name for {_listed(names)}, which {'is' if len(names) == 1 else 'are'} called so."
    ]


def _repeated_findings(repeated: dict[str, list[str]]) -> list[str]:
    named = list(repeated.items())[:MOST_NAMED]
    findings = [
        f"The header has {name!r} {len(others) + 1} times; the further ones are called {_listed(others)}."
        for name, others in named
    ]
    if more := len(repeated) - len(named):
        findings.append(f"{more:,} more names are repeated in the header, and are numbered in the same way.")
    return findings


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(repr(name) for name in names[:MOST_NAMED]) + more
