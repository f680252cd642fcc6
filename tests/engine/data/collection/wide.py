"""Tables with many columns that have the same fault."""

from tests.engine.data.collection.case import TableCase, csv_rows

COLUMNS, ROWS = 60, 40
NAMES = [f"c{place}" for place in range(COLUMNS)]


def _wide(name: str, values: list[str], *, findings: tuple[str, ...], absent: tuple[str, ...]) -> TableCase:
    """Return a table whose columns have the same values, each with a digit of its own."""
    rows = [
        [*(value.format(place) for place in range(COLUMNS)), f"{i % 7}.5", str(i % 2)]
        for i, value in enumerate(values)
    ]
    content = csv_rows(",".join([*NAMES, "size", "y"]), *map(",".join, rows))
    return TableCase(name, content, findings=findings, absent=absent)


CASES: tuple[TableCase, ...] = (
    _wide(
        "wide_with_names_of_rows.csv",
        [f"row_{number}_of_{{}}" for number in range(ROWS)],
        findings=("The same holds, with values of their own, for 29 columns: 'c31', 'c32', 'c33'",),
        absent=("Column 'c31' is left out",),
    ),
)
