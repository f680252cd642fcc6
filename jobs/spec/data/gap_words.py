"""Words that people write where a number or a date is missing."""

GAP_WORDS = frozenset(
    {
        *("-", "--", "---", ":", "–", "—", ".", "..", "...", "…", "?", "/", "*", "#n/a", "#na", "<na>"),
        *(r"\n", "(null)", "[null]", "<null>", "nat", "#n/a n/a", "(blank)", "(leer)", "\u2212"),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
        *("na", "n/a", "n.a.", "n. a.", "n.a", "nan", "-nan", "null", "none", "nil", "nd", "n.d.", "n/d"),
        *("missing", "unknown", "not available", "not applicable", "no answer", "no data"),
        *("k.a.", "k. a.", "k.a", "ka", "k/a", "keine angabe", "keine angaben", "unbekannt", "fehlt"),
        *("n.v.", "n. v.", "n/v", "nicht verfügbar", "entfällt", "s.o.", "s.d.", "s/d", "n.c."),
    }
)
"""In lower case. Between numbers or dates they are missing values. Between other words, `gap_evidence` of the
engine decides, since `none` and `missing` may be categories."""
MARKERS = (
    *("NA", "N/A", "n/a", "#N/A", "#N/A N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "<NA>", "NaT"),
    # MySQL, PostgreSQL and Hive; Oracle, SQL Server and other clients of databases.
    *(r"\N", "(null)", "(NULL)", "[null]", "[NULL]", "<null>", "<NULL>"),
    # The C library of Windows.
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Words that programs write for a missing value of any type."""
PROGRAM_WORDS = (*MARKERS, "None")
"""With the word of Python, which is also an English word, and so often a category."""
LONGEST = max(map(len, GAP_WORDS))


def is_gap(field: str) -> bool:
    """Return whether a field is empty, or a word for a missing number or date."""
    word = field.strip()
    # Most fields are longer, and are not compared.
    return not word or (len(word) <= LONGEST and word.lower() in GAP_WORDS)
