"""Decides by name and values whether a column identifies rows instead of describing them.

A column of words identifies rows if nearly all of its values differ: nothing can be learnt from them. Whole
numbers that all differ may also be a measure, such as a price, a population or a time, so three signs decide:

- the name is that of an identifier, as `customerid`, `PID` and `row_no` are;
- the values number the rows: they all differ, and hardly a number between the smallest and the largest is
  missing. Names of times, such as `year`, are excepted;
- the values are in no order, and so close together that some would repeat if they were measured.

All others are features, for which the page offers the role id, as it offers the role feature for the first.
"""

import math
import re
from typing import NamedTuple

import numpy as np

from jobs.spec.data.columns import ColumnType
from workers.engine.arrays import Array
from workers.engine.data.encode import missing
from workers.engine.data.reading.codes import TELEPHONE_NUMBERS, are_telephone_numbers, form_of_codes
from workers.engine.data.words import Words

MIN_ROWS = 20
"""In fewer rows, all values of a column may differ by chance."""
FIRST_ROWS = (10_000, 200_000)
"""Nearly every column repeats values in its first rows, so the whole of it is seldom compared."""
MIN_KNOWN = 0.9
"""Share of the rows that have a value."""
MIN_DIFFERENT = 0.95
"""Share of the values that differ."""
MAX_SPAN = 1.05
"""Numbers from the smallest value to the largest, for each row, if the values number the rows."""
MAX_CHANCE = math.log(1e-9)
"""Below this probability, as a logarithm, values that all differ do so for a reason."""
SHOWING = 100
"""Words that show whether a column has UUIDs, hashes or addresses."""
MIN_GROUPS = 50
"""Fewer numbers in a column whose name is that of an identifier may be codes."""

IN_EVERY_ROW = "it has another value in every row, so it identifies rows"
_ID_WORDS = frozenset(
    {
        *("id", "ids", "pid", "uid", "uuid", "guid", "oid", "sid", "cid", "tid", "rid", "gid", "eid", "pk"),
        *("rowid", "unnamed", "hash", "md5", "sha1", "sha256", "email", "mail", "phone", "telephone"),
        *("ean", "upc", "isbn", "imei", "iban", "ssn", "vin"),
    }
)
_NUMBER_WORDS = frozenset({"index", "key", "no", "nr", "num", "number", "rn", "row", "rownum", "serial"})
"""They may also name a measure: `NO2`, the number of a house."""
_MEASURE_WORDS = frozenset({"index"})
"""Of these only the word alone names a row: a price index is a measure."""
_ENDS = re.compile(r"(?P<thing>[a-z]{2,})(?P<end>id|nummer|number|nr)")
"""The end of a word such as `customerid`."""
_WORDS_IN_ID = frozenset(
    {
        *("acid", "acrid", "afraid", "aid", "amid", "android", "aphid", "arid", "asteroid", "astrid", "avid"),
        *("avoid", "bid", "braid", "candid", "caryatid", "centroid", "chromatid", "colloid", "covid"),
        *("cuboid", "cupid", "david", "deltoid", "druid", "ellipsoid", "factoid", "fetid", "fibroid"),
        *("flaccid", "florid", "fluid", "forbid", "frigid", "grid", "hominid", "horrid", "humid", "hybrid"),
        *("hydroid", "ingrid", "insipid", "intrepid", "invalid", "keloid", "kid", "laid", "languid", "lid"),
        *("limpid", "lipid", "liquid", "livid", "lucid", "lurid", "madrid", "maid", "mastoid", "medicaid"),
        *("mermaid", "mid", "morbid", "nucleoid", "opioid", "orchid", "outbid", "overbid", "overpaid"),
        *("ovoid", "paid", "pallid", "paranoid", "placid", "plaid", "plasmid", "polaroid", "prepaid"),
        *("putrid", "pyramid", "rabid", "raid", "rancid", "rapid", "repaid", "retinoid", "rheumatoid"),
        *("rhomboid", "rigid", "said", "schizoid", "sigmoid", "skid", "solenoid", "solid", "sordid"),
        *("spheroid", "splendid", "squalid", "squid", "steroid", "stolid", "stupid", "tabloid", "tepid"),
        *("thyroid", "timid", "toroid", "torrid", "trapezoid", "turbid", "typhoid", "underbid"),
        *("underpaid", "undid", "unpaid", "valid", "vapid", "viscid", "vivid", "void", "xyloid"),
    }
)
"""Words that end like an identifier."""
_TIME_WORDS = frozenset(
    {
        *("t", "time", "times", "timestamp", "ts", "date", "year", "years", "month", "months", "week"),
        *("weeks", "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "ms"),
        *("quarter", "period", "step", "steps", "tick", "epoch", "cycle", "cycles", "age", "jahr", "monat"),
        *("woche", "tag", "stunde", "datum"),
    }
)
_PATTERNS = {
    "UUIDs": re.compile(r"\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?", re.IGNORECASE),
    "hashes": re.compile(r"(0x)?([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64})", re.IGNORECASE),
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+"),
}


class Judgement(NamedTuple):
    """Whether a column identifies rows.

    Attributes:
        reason: why it does, or None.
        is_named: whether its name is that of an identifier, or its values are words. A table may have no
            other feature than numbers of its rows.
        doubt: for a column that is a feature, why it may be an identifier; None without doubt.
        is_group: whether several rows have each of these identifiers.
    """

    reason: str | None = None
    is_named: bool = True
    doubt: str | None = None
    is_group: bool = False


NO_IDENTIFIER = Judgement()


def judge(name: str, column: Array | Words, kind: ColumnType) -> Judgement:
    """Return whether a column identifies rows.

    Args:
        name: the column's name.
        column: its values, (rows,).
        kind: its type.
    """
    if isinstance(column, Words):
        by_kind = {"category": _judge_words, "text": _judge_texts}
        return by_kind[kind](_counted_words(column)) if kind in by_kind else NO_IDENTIFIER
    if len(column) < MIN_ROWS:
        return NO_IDENTIFIER
    if kind == "category":
        return _judge_words(_counted(column))
    if kind == "text":
        return _judge_texts(_counted(column))
    if kind not in ("integer", "number"):
        return NO_IDENTIFIER
    is_named = has_id_name(name)
    for rows in FIRST_ROWS:
        head = column[:rows]
        head = head[~missing(head)]
        if not _are_whole(head) or (not is_named and len(np.unique(head)) < len(head)):
            return NO_IDENTIFIER
    present = column[~missing(column)]
    if len(present) < max(MIN_ROWS, MIN_KNOWN * len(column)) or not _are_whole(present):
        return NO_IDENTIFIER
    has_gaps = len(present) < len(column)
    judgement = _judge_numbers(name, present, is_named=is_named, is_integer=kind == "integer" or has_gaps)
    if not has_gaps or judgement.reason != IN_EVERY_ROW:
        return judgement
    return judgement._replace(reason=_mostly_different(len(present), len(present)))


def judge_read_numbers(numbers: Array) -> Judgement:
    """Return whether words that identified rows still do so as numbers, which a person has chosen to read.

    Args:
        numbers: (rows,), NaN for gaps and for values that are no numbers.
    """
    present = numbers[~missing(numbers)]
    different = len(np.unique(present))
    if len(present) < MIN_ROWS or not _are_whole(present) or different < MIN_DIFFERENT * len(present):
        return NO_IDENTIFIER
    return Judgement(_mostly_different(different, len(present)))


def has_id_name(name: str) -> bool:
    """Return whether a name is that of an identifier, such as `customerid`, `PID` or `order no`."""
    words = _words(name)
    if not words or (words[-1] in _MEASURE_WORDS and len(words) > 1):
        return False
    # The number of a day or a cycle is a time, which also differs in every row.
    is_number = words[-1] in _NUMBER_WORDS and not _names_a_time(words)
    return _names_things(name) or is_number or _has_end(words[-1])


def _names_things(name: str) -> bool:
    """Return whether a name is that of an identifier, and not of a number or a measure."""
    words = _words(name)
    if len(words) > 1 and words[-1].isdigit():
        # As pandas names an index: `Unnamed: 0`.
        words = words[:-1]
    return bool(words) and (
        words[0] == "id" or words[-1] in _ID_WORDS or (words[-1].endswith("id") and _has_end(words[-1]))
    )


def _has_end(word: str) -> bool:
    if _ENDS.fullmatch(word) is None or word in _WORDS_IN_ID:
        return False
    return word.endswith("id") or not _names_a_time([word])


def _is_surely_named(name: str) -> bool:
    """Return whether a name is no abbreviation, which a column keeps as the only feature of a table."""
    return not _words(name)[-1].endswith("nr")


def _names_a_time(words: list[str]) -> bool:
    """Return whether a word is that of a time, also in one such as `weeknumber`."""
    ends = (_ENDS.fullmatch(word) for word in words)
    things = {end["thing"] for end in ends if end is not None and end["end"] != "id"}
    return bool(_TIME_WORDS & {*words, *things})


def _words(name: str) -> list[str]:
    """Return a name's words in lower case, also those of `camelCase`."""
    divided = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return re.findall(r"[^\W\d_]+|\d+", divided.lower())


def _are_whole(numbers: Array) -> bool:
    if numbers.dtype.kind in "iu":
        return True
    if numbers.dtype.kind != "f":
        return False
    present = numbers[np.isfinite(numbers)]
    return bool((present == np.round(present)).all())


class _Counted(NamedTuple):
    """A column's words.

    Attributes:
        head: the first ones.
        different: how many differ; 0 if many are equal.
        known: rows that have one.
        rows: all rows.
    """

    head: Array
    different: int
    known: int
    rows: int


def _counted(column: Array) -> _Counted:
    known = column[column != ""]
    head = known[: FIRST_ROWS[0]]
    are_different = len(np.unique(head)) >= (2 * MIN_DIFFERENT - 1) * len(head)
    return _Counted(head, len(np.unique(known)) if are_different else 0, len(known), len(column))


def _counted_words(words: Words) -> _Counted:
    known = words.values[words.values != ""]
    counts = words.counts()
    return _Counted(known, len(known), counts.total() - counts[""], counts.total())


def _judge_words(words: _Counted) -> Judgement:
    if words.rows < MIN_ROWS or words.known < max(MIN_ROWS, MIN_KNOWN * words.rows):
        return NO_IDENTIFIER
    form = _form(words.head)
    if words.different < MIN_DIFFERENT * words.known:
        doubt = f"its values are {form}, and several rows have the same"
        return Judgement(doubt=doubt, is_group=True) if form else NO_IDENTIFIER
    if words.different == words.rows:
        return Judgement(
            "it has another value in every row, so it identifies rows" + (f" by {form}" if form else "")
        )
    return Judgement(_mostly_different(words.different, words.known) + (f" by {form}" if form else ""))


def _judge_texts(words: _Counted) -> Judgement:
    """Return whether texts of several words are codes, such as card numbers, and all differ."""
    if words.rows < MIN_ROWS or words.different < max(MIN_ROWS, MIN_DIFFERENT * words.known):
        return NO_IDENTIFIER
    if (form := form_of_codes(words.head[:SHOWING].tolist())) is None:
        return NO_IDENTIFIER
    return Judgement(f"{_mostly_different(words.different, words.known)} by {form}", is_named=False)


def _mostly_different(different: int, known: int) -> str:
    values = (
        f"all of its {known:,} values" if different == known else f"{different:,} of its {known:,} values"
    )
    return f"{values} differ, so it identifies rows"


def _form(words: Array) -> str | None:
    """Return the name of the form that all of these words have; None if they have none."""
    texts = words[:SHOWING].tolist()
    forms = (form for form, pattern in _PATTERNS.items() if all(map(pattern.fullmatch, texts)))
    return next(forms, TELEPHONE_NUMBERS if are_telephone_numbers(texts) else None)


def _judge_numbers(name: str, present: Array, *, is_named: bool, is_integer: bool) -> Judgement:
    ordered = np.unique(present)
    rows, different = len(present), len(ordered)
    if is_named:
        if different == rows:
            return Judgement(IN_EVERY_ROW, is_named=_is_surely_named(name))
        if different >= MIN_DIFFERENT * rows:
            return Judgement(_mostly_different(different, rows), is_named=_is_surely_named(name))
        if different > MIN_GROUPS and _names_things(name):
            doubt = (
                f"its name is that of an identifier, and {rows:,} rows have {different:,} different values"
            )
            return Judgement(doubt=doubt, is_group=True)
        return NO_IDENTIFIER
    if different < rows:
        return NO_IDENTIFIER
    if _names_a_time(_words(name)):
        return NO_IDENTIFIER
    doubtful = Judgement(doubt="it has another whole number in every row") if is_integer else NO_IDENTIFIER
    low, high = int(ordered[0]), int(ordered[-1])
    if high - low + 1 <= MAX_SPAN * rows:
        return Judgement(f"its whole numbers from {low} to {high} number the rows", is_named=False)
    if _has_order(present) or _chance(rows, high - low + 1) > MAX_CHANCE:
        return doubtful
    return Judgement(
        f"its whole numbers from {low} to {high} never repeat, as measured ones would, so they identify rows",
        is_named=False,
    )


def _has_order(numbers: Array) -> bool:
    """Return whether all numbers rise or all fall: a time or a total never repeats either."""
    rises = numbers[1:] > numbers[:-1]
    return bool(rises.all() or not rises.any())


def _chance(rows: int, span: int) -> float:
    """Return the logarithm of the probability that numbers drawn at random from a span all differ."""
    if rows > span:
        return -math.inf
    if span > 10 * rows:
        # Differences of large logarithms would not be exact.
        return -rows * (rows - 1) / (2 * span)
    return math.lgamma(span + 1) - math.lgamma(span - rows + 1) - rows * math.log(span)
