"""Lists of names in one text, as forms and addresses have them: separated by commas, in quotes where needed.

>>> read_names('age, "dist, km"')
['age', 'dist, km']
"""

import csv
import io
from collections.abc import Iterable


def read_names(text: str) -> list[str]:
    """Return the names in a text, without the spaces around them. Lines separate them too.

    A name with a comma, or that begins with a quote, is in quotes, in which two quotes mean one, as in CSV.

    Raises:
        ValueError: a quote is not closed, or is followed by other characters than a comma.
    """
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ValueError(
            f"the names {text[:100]!r} are no list ({error}); separate them by commas, and put a name with a "
            'comma in quotes: "dist, km"'
        ) from error
    names = (name.strip() for row in rows for name in row)
    return [name for name in names if name]


def write_names(names: Iterable[str]) -> str:
    """Return the text that `read_names` reads as these names."""
    return ",".join(f'"{name.replace('"', '""')}"' if _needs_quotes(name) else name for name in names)


def _needs_quotes(name: str) -> bool:
    return name.startswith('"') or any(character in name for character in ",\r\n")
