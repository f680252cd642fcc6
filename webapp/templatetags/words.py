"""Formats numbers, sizes and times."""

import datetime as dt
import math
import re
from collections.abc import Mapping
from typing import Any

NONE = "–"
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with `digits` significant digits.

    >>> number(0.97312345), number(12345.6), number(3), number(None)
    ('0.9731', '12346', '3', '–')
    """
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else digits
    return f"{value:.{min(decimals, digits)}f}"


def byte_size(count: float | None) -> str:
    """Return a number of bytes in a suitable unit.

    >>> byte_size(0), byte_size(1536), byte_size(48_256_000)
    ('0 B', '1.5 kB', '48.3 MB')
    """
    if count is None:
        return NONE
    size, power = float(count), 0
    while abs(size) >= 1000 and power < len(UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.0f} B" if power == 0 else f"{size:.1f} {UNITS[power]}"


def duration(seconds: float | dt.timedelta | None) -> str:
    """Return a duration in its two largest units.

    >>> duration(0.26), duration(7), duration(125), duration(7261)
    ('0.3 s', '7 s', '2 min 5 s', '2 h 1 min')
    """
    if seconds is None:
        return NONE
    total = seconds.total_seconds() if isinstance(seconds, dt.timedelta) else seconds
    if 0 < total < 1:
        return f"{total:.1f} s"
    parts: list[str] = []
    left = round(total)
    for size, unit in STEPS:
        count, left = divmod(left, size)
        if count or (parts and len(parts) < 2):
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part) or "0 s"


def relative(age: dt.timedelta) -> str:
    """Return an age, or the time until a future event, in words. time.js does the same.

    >>> relative(dt.timedelta(seconds=3)), relative(dt.timedelta(hours=5)), relative(dt.timedelta(days=-6.9))
    ('just now', '5 h ago', 'in 7 d')
    """
    seconds = abs(age.total_seconds())
    if seconds < 10:
        return "just now"
    size, unit = next(step for step in STEPS if seconds >= step[0])
    if age > dt.timedelta():
        return f"{int(seconds // size)} {unit} ago"
    # Rounded: seven days are "in 7 d" also a moment later.
    return f"in {round(seconds / size)} {unit}"


SETTINGS = re.compile(r" \((?:(?:rows_without_target|type) = [^()]*|(?:fit|after)(?:\.[a-z_]+)+)\)")
"""A setting's name in REST, which follows its name in words. Other names in brackets may be files."""


def sentence(text: str) -> str:
    """Return a message that another sentence follows, with a full stop at its end, without names in REST.

    >>> sentence("a.csv is empty"), sentence("The file (data.csv) is empty.")
    ('a.csv is empty.', 'The file (data.csv) is empty.')
    """
    text = SETTINGS.sub("", text)
    return text if text.endswith((".", "!", "?")) else f"{text}."


NAME_SIGNS = re.compile(r"[^a-z'’,:;-]")
"""Characters that no word of a sentence has; a first word with one of them is a name."""


def shown_message(text: str) -> str:
    """Return a message for a page: without names in REST, and with a capital if it is no whole sentence.

    One sentence with its full stop may begin with a name, and so may a text whose first word has other signs.

    >>> shown_message("use another seed (fit.seed)"), shown_message("train.py reported no metrics")
    ('Use another seed', 'train.py reported no metrics')
    >>> shown_message("ada is not a member.")
    'ada is not a member.'
    """
    text = SETTINGS.sub("", text)
    first = text.partition(" ")[0]
    is_sentence = text.endswith(".") and ". " not in text
    return text if NAME_SIGNS.search(first) or is_sentence else text[:1].upper() + text[1:]


PHASES = {
    "installing packages": "installing packages",
    "loading": "loading the data",
    "compiling": "compiling",
    "timing": "choosing the faster way",
    "validating": "validating",
    "saving": "saving the model",
    "evaluating": "evaluating on the test rows",
}


def progress(values: Any) -> dict[str, Any]:
    """Return the bar's variables for `{done, total, unit, eta_seconds, fraction?, phase?}`.

    `values` is a mapping or an object.
    """

    def read(name: str) -> Any:
        return values.get(name) if isinstance(values, Mapping) else getattr(values, name, None)

    done, total = float(read("done") or 0), float(read("total") or 0)
    counted = done / total if total > 0 else 0.0
    fraction, left = read("fraction"), read("eta_seconds")
    share = counted if fraction is None else float(fraction)
    return {
        "done": f"{done:g}",
        "total": f"{total:g}",
        "unit": read("unit") or "",
        "known": total > 0,
        "percent": round(100 * min(share, 1)),
        # All units may be done while steps after them are still to come.
        "with_steps": round(100 * share) < round(100 * counted),
        # The number of trials is then only a bound.
        "limit": None if (minutes := read("max_minutes")) is None else duration(minutes * 60),
        "left": None if left is None else duration(left),
        "phase": PHASES.get(read("phase") or "", ""),
    }
