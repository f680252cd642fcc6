"""Quotes texts in CSV files that a spreadsheet would evaluate as a formula."""

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets evaluate a cell that starts with one of these."""


def quoted(text: str) -> str:
    """Return a text for a spreadsheet. Numbers stay as they are."""
    if not text.startswith(FORMULA_PREFIXES):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
